import { readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build as buildClient } from "esbuild";
import { build } from "vite";
import type { TestProject } from "vitest/node";
import { compileLibrary } from "./compileLibrary.js";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the library in a few large files, with a slash at its end: `index.js` in it is the root entry. */
    bundleUrl: string;
  }
}

/** The clients that `openStore.mjs` opens stores with, and what it takes of each. */
const clients = { ioredis: "Cluster, Redis", pg: "Pool", "@aws-sdk/client-dynamodb": "DynamoDB" };

/**
 * Puts what `compileLibrary` compiles into a few large files, for fleets of many processes: each loads them in a fraction of the time
 * that hundreds of small ones take. Tests get the folder from `inject("bundleUrl")`; only the entries are there, and in `clients/` the
 * clients of the stores, each in one file.
 *
 * It happens once, in about 2 s, before the tests of a project whose `globalSetup` this file is. The function returned deletes it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  using compiled = await compileLibrary();
  const root = fileURLToPath(compiled.url);
  const entries = readdirSync(root).filter((name) => name.endsWith(".js"));
  const input = Object.fromEntries(entries.map((name) => [basename(name, ".js"), join(root, name)]));
  const folder = await mkdtemp(join(tmpdir(), "politely-bundle-"));
  // Dependencies stay outside, as they do for those who install it.
  const rollupOptions = { input, external: /^[\w@]/, output: { entryFileNames: "[name].js" } };
  await build({
    configFile: false,
    root,
    logLevel: "warn",
    build: { ssr: true, target: "es2022", minify: false, outDir: folder, emptyOutDir: false, rollupOptions },
  });
  await bundleClients(join(folder, "clients"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  project.provide("bundleUrl", `${pathToFileURL(folder).href}/`);
  return () => rm(folder, { recursive: true, force: true });
}

async function bundleClients(folder: string): Promise<void> {
  const resolveDir = fileURLToPath(new URL(".", import.meta.url));
  // What is written for CommonJS asks for Node's own modules with this.
  const require = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  const bundled = Object.entries(clients).map(([name, parts]) =>
    buildClient({
      stdin: { contents: `export { ${parts} } from "${name}";`, resolveDir },
      outfile: join(folder, `${name}.js`),
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      external: ["pg-native"],
      banner: { js: require },
      logLevel: "warning",
    }),
  );
  await Promise.all(bundled);
}
