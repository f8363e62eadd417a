// Bundles what a page or a worker would load, minified, and says how large it is compressed, beside what we want (docs/decisions/0008-what-the-root-holds.md). Fails
// when it has grown beyond what it was. Needs the build.
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./run.mjs";

/**
 * kB are 1,000 bytes, of gzip at its best. Files that match `without` are replaced by exports of nothing.
 *
 * @type {readonly { name: string; code: string; without?: RegExp; wantedBytes: number; boundBytes: number }[]}
 */
const bundles = [
  {
    name: "import { limit } without the reader of headers",
    code: 'export { limit } from "politely";',
    without: /\/dist\/http\/headers\//,
    wantedBytes: 25_000,
    boundBytes: 44_100,
  },
  { name: "import { limit }", code: 'export { limit } from "politely";', wantedBytes: 28_000, boundBytes: 51_300 },
  { name: "the whole root entry", code: 'export * from "politely";', wantedBytes: 54_000, boundBytes: 69_000 },
];

const areSmall = [];
for (const bundle of bundles) areSmall.push(await isSmall(bundle));
process.exit(areSmall.every(Boolean) ? 0 : 1);

/**
 * Prints the size and, when it has grown, which folders of the source the bytes come from.
 *
 * @param {(typeof bundles)[number]} bundle
 */
async function isSmall({ name, code, without, wantedBytes, boundBytes }) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: root },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
    metafile: true,
    logLevel: "error",
    plugins: without === undefined ? [] : [emptied(without)],
  });
  const text = outputFiles[0]?.contents ?? new Uint8Array();
  const bytes = gzipSync(text, { level: 9 }).length;
  console.log(`${name}: ${kB(bytes)} compressed (${kB(text.length)} minified), wanted ${kB(wantedBytes)}`);
  if (bytes <= boundBytes) return true;
  const inputs = Object.values(metafile.outputs)[0]?.inputs ?? {};
  console.error(
    `More than ${kB(boundBytes)}. Minified, by folder: ${byFolder(inputs)}. Root code must not import what only some programs use.`,
  );
  return false;
}

/**
 * Leaves out files, but for the names of what they export.
 *
 * @param {RegExp} filter
 * @returns {import("esbuild").Plugin}
 */
function emptied(filter) {
  return {
    name: "emptied",
    setup(bundler) {
      bundler.onLoad({ filter }, async ({ path }) => {
        const names = (await readFile(path, "utf8")).matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm);
        return { contents: Array.from(names, ([, name]) => `export const ${name} = 0;`).join("\n") };
      });
    },
  };
}

/** @param {Record<string, { bytesInOutput: number }>} inputs */
function byFolder(inputs) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const folder = /\/dist\/(.*)\/[^/]*$/.exec(path)?.[1] ?? "(top)";
    sums.set(folder, (sums.get(folder) ?? 0) + bytesInOutput);
  }
  return [...sums]
    .sort(([, one], [, other]) => other - one)
    .map(([folder, sum]) => `${folder} ${kB(sum)}`)
    .join(", ");
}

/** @param {number} bytes */
function kB(bytes) {
  return `${(bytes / 1_000).toFixed(1)} kB`;
}
