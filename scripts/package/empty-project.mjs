// A project that has nothing but the packed library and the dependencies it names, optional ones too: no HTTP client, no database driver.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publicEntries } from "../public-entries.mjs";
import { root, run, tool } from "../run.mjs";

const web = { lib: ["es2023", "esnext.disposable", "dom"], types: [] };
/** Who compiles against us. Declarations of `@types/node` are not ours to check. */
const settings = {
  nodenext: { module: "nodenext", moduleResolution: "nodenext", ...web },
  bundler: { module: "esnext", moduleResolution: "bundler", ...web },
  node: { module: "nodenext", moduleResolution: "nodenext", lib: ["es2023"], types: ["node"], skipLibCheck: true },
};

/**
 * Unpacks the library into a new project. Dependencies are linked from the workspace, so that no network is needed.
 *
 * @param {string} tarball
 * @param {string} folder of the project, which exists
 * @returns {boolean}
 */
export function makeProject(tarball, folder) {
  const modules = join(folder, "node_modules");
  const home = join(modules, "politely");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  if (!run("tar", ["-xzf", tarball, "-C", home, "--strip-components=1"])) return false;
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  mkdirSync(join(modules, "@types"));
  for (const name of [...Object.keys({ ...dependencies, ...peerDependencies }), "@types/node"]) {
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  return true;
}

/**
 * Loads every entry, with `import` and with `require`, and paces a few calls.
 *
 * @param {string} folder
 * @param {string} [node] which Node runs it
 * @returns {boolean}
 */
export function loads(folder, node = process.execPath) {
  const names = publicEntries("politely").map(({ name }) => name);
  const use = `
const clock = performance.now();
const paced = limit({ minDelay: "20ms" });
Promise.all([1, 2, 3].map(() => paced.run(() => performance.now() - clock))).then((starts) => {
  if (starts[2] < 40) throw new Error("The third start came after " + starts[2] + " ms instead of 40 ms.");
});
`;
  const imports = names.map((name) => `await import("${name}");`);
  writeFileSync(join(folder, "loads.mjs"), [...imports, 'const { limit } = await import("politely");', use].join("\n"));
  // `politely/register` is for --import only: it waits for a policy file.
  const requires = names.filter((name) => name !== "politely/register").map((name) => `require("${name}");`);
  writeFileSync(join(folder, "loads.cjs"), [...requires, 'const { limit } = require("politely");', use].join("\n"));
  return ["loads.mjs", "loads.cjs"].every((file) => run(node, ["--no-warnings", join(folder, file)]));
}

/**
 * Type-checks a program that imports every entry, declaration files included, as `nodenext` and as `bundler` resolve it, and with the types of Node alone.
 *
 * @param {string} folder
 * @returns {boolean}
 */
export function hasTypes(folder) {
  const imports = publicEntries("politely").map(({ name }, index) => `import * as entry${index} from "${name}";`);
  const uses = imports.map((_, index) => `entry${index}`);
  const program = [
    ...imports,
    'import { limit, politely } from "politely";',
    'const polite = politely({ default: { rate: "2/s", concurrency: 4 } });',
    'export const status: Promise<number> = polite.run("https://example.com/", async (permit) => permit.waitedMs);',
    'export const text: Promise<string> = limit({ window: "60/min" }).run(() => "text");',
    "// @ts-expect-error a rate has a unit",
    'politely({ default: { rate: "2" } });',
    `export const entries = [${uses.join(", ")}];`,
  ];
  writeFileSync(join(folder, "program.ts"), program.join("\n"));
  return Object.entries(settings)
    .map(([name, options]) => {
      const file = join(folder, `tsconfig.${name}.json`);
      const compilerOptions = {
        target: "es2022",
        strict: true,
        noEmit: true,
        exactOptionalPropertyTypes: true,
        ...options,
      };
      writeFileSync(file, JSON.stringify({ compilerOptions, files: ["program.ts"] }));
      return tool("tsc", ["-p", file]);
    })
    .every(Boolean);
}
