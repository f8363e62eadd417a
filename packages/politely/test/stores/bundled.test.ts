import { execFile } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build as esbuild } from "esbuild";
import { build as viteBuild } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledLibrary, compileLibrary } from "../fleet/compileLibrary.js";

const manifest = fileURLToPath(new URL("../../package.json", import.meta.url));

/** A program with a store, bundled as a user would: the package says what has side effects. */
const program = (imported: string, store: string): string => `
  import { politely } from "politely";
  ${imported}
  const mine = { name: "mine", timeline: "epoch", transact: () => Promise.reject(new Error("nothing here")) };
  const polite = politely({ default: { rate: "1/s" } }, { store: ${store}, outage: "open" });
  console.log(typeof polite.acquire);
  process.exit();
`;

const bundlers: Readonly<Record<string, (entry: string, outfile: string) => Promise<unknown>>> = {
  esbuild: (entry, outfile) =>
    esbuild({ entryPoints: [entry], outfile, bundle: true, format: "esm", platform: "node", logLevel: "error" }),
  vite: (entry, outfile) =>
    viteBuild({
      configFile: false,
      logLevel: "error",
      root: join(entry, ".."),
      build: {
        ssr: entry,
        outDir: join(outfile, ".."),
        emptyOutDir: false,
        minify: false,
        rollupOptions: { output: { entryFileNames: outfile.split("/").at(-1) ?? "" } },
      },
      ssr: { noExternal: true, target: "node" },
    }),
};

describe.each(Object.keys(bundlers))("a program bundled by %s", (bundler) => {
  let library: CompiledLibrary;
  let folder: string;
  beforeAll(async () => {
    library = await compileLibrary();
    folder = mkdtempSync(join(tmpdir(), "politely-bundled-"));
    const home = join(folder, "node_modules", "politely");
    mkdirSync(home, { recursive: true });
    copyFileSync(manifest, join(home, "package.json"));
    // A copy: bundlers look for package.json beside the real files.
    cpSync(fileURLToPath(library.url), join(home, "dist"), { recursive: true });
    rmSync(join(home, "dist", "package.json"));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
    library.remove();
  });

  const said = async (name: string, text: string): Promise<string> => {
    const [entry, outfile] = [join(folder, `${name}.js`), join(folder, `${name}.bundle.mjs`)];
    writeFileSync(entry, text);
    await bundlers[bundler](entry, outfile);
    return (await promisify(execFile)(process.execPath, [outfile])).stdout.trim();
  };

  it("keeps what a bare import of politely/store brings along", async () => {
    expect(await said("bare", program('import "politely/store";', "mine"))).toBe("function");
  });

  it("keeps it where one store is imported by name", async () => {
    const [imported, store] = [
      'import { redisStore } from "politely/redis";',
      "redisStore({ send_command: 1, call() {} })",
    ];
    expect(await said("named", program(`${imported}\nvoid (() => ${store});`, "mine"))).toBe("function");
  });
});
