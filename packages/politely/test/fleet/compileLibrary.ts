import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { atExit } from "./guardedProcess.js";

const project = fileURLToPath(new URL("../../tsconfig.json", import.meta.url));
const compiledWithinMs = 60_000;

/** The library as JavaScript that a child process can import. */
export interface CompiledLibrary extends Disposable {
  /** The folder, with a slash at its end: `index.js` in it is the root entry. */
  readonly url: string;
  /** Deletes the folder; the end of this process does too. A second call does nothing. */
  remove(): void;
}

/**
 * Compiles the sources as they are now into a temporary folder, in about half a second, without looking at types.
 *
 * So a child process never runs an older build, and none has to be there. Rejects with what the compiler says about sources that
 * are no TypeScript.
 */
export async function compileLibrary(): Promise<CompiledLibrary> {
  const folder = await mkdtemp(join(tmpdir(), "politely-library-"));
  const forget = atExit(() => rmSync(folder, { recursive: true, force: true }));
  const remove = (): void => {
    forget();
    rmSync(folder, { recursive: true, force: true });
  };
  const args = ["-p", project, "--outDir", folder, "--noCheck", "--declaration", "false"];
  try {
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await promisify(execFile)(process.execPath, [compilerPath(), ...args], { timeout: compiledWithinMs });
  } catch (error) {
    remove();
    const { stdout = "" } = error as { stdout?: string };
    throw new Error(`The sources could not be compiled. ${stdout.slice(0, 1_000)}`, { cause: error });
  }
  return { url: `${pathToFileURL(folder).href}/`, remove, [Symbol.dispose]: remove };
}

function compilerPath(): string {
  const manifest = createRequire(import.meta.url).resolve("@typescript/native/package.json");
  return join(dirname(manifest), "bin", "tsc");
}
