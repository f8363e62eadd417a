import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";

const sources = fileURLToPath(new URL("../../../src/", import.meta.url));
const entry = "stores/sqlite.ts";
const longestMs = 40_000;

/** The store as JavaScript that a child process can load, from the sources as they are now. */
export interface CompiledStore {
  readonly url: string;
  remove(): void;
}

/** How a child process ended. */
export interface Ended {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Compiles `politely/sqlite` and all it imports into a temporary folder, without looking at types. */
export function compileStore(): CompiledStore {
  const folder = mkdtempSync(join(tmpdir(), "politely-sqlite-code-"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
  const paths = new Set([entry]);
  // A set hands out what is added to it while it is walked.
  for (const path of paths) {
    const { outputText } = ts.transpileModule(readFileSync(join(sources, path), "utf8"), { compilerOptions });
    for (const [, specifier] of outputText.matchAll(/from "(\.[^"]+)\.js"/g)) {
      paths.add(posix.join(posix.dirname(path), `${specifier}.ts`));
    }
    const file = join(folder, path.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, outputText);
  }
  return {
    url: pathToFileURL(join(folder, entry.replace(/\.ts$/, ".js"))).href,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** What surrounds a child process. */
export interface Surroundings {
  /** Goes in front of the command: `["faketime", "-f", "+60s"]`. */
  readonly before?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a program of this folder to its end. One that hangs is killed after 40 s. */
export async function runChild(
  program: string,
  args: readonly string[],
  { before = [], env = {} }: Surroundings = {},
): Promise<Ended> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  // The runner's own NODE_OPTIONS are not the program's.
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const [command, ...rest] = [...before, process.execPath, file, ...args];
  const child = spawn(command, rest, {
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: longestMs,
    killSignal: "SIGKILL",
  });
  const closed = new Promise<Pick<Ended, "code" | "signal">>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const [stdout, stderr, end] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { ...end, stdout, stderr };
}
