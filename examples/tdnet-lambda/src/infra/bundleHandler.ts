import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** What the function's setting `handler` has to be for the bundle. */
export const bundledHandler = "index.handler";

// Source or compiled: esbuild finds the file whose name begins so, beside this folder.
const entry = fileURLToPath(new URL("../handler", import.meta.url));

/**
 * Writes the handler and all it needs as one file, `index.mjs`, into `folder`, which is made if it is not there. Returns the path of the file.
 *
 * Takes about a second, without a network or Docker. The AWS client goes in too: the version that was tested, not the one that Lambda happens to have.
 */
export async function bundleHandler(folder: string): Promise<string> {
  const outfile = join(folder, "index.mjs");
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify: true,
    // Stack traces in the log keep the names of functions.
    keepNames: true,
    platform: "node",
    target: "node22",
    format: "esm",
    mainFields: ["module", "main"],
    // Parts of the AWS client are CommonJS and ask for modules of Node by `require`.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "warning",
  });
  return outfile;
}
