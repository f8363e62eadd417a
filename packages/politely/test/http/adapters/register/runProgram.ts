import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const LONGEST_MS = 20_000;

/** How a program ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of stderr that are Politely's. */
  readonly lines: readonly string[];
}

/** What a program is run with. */
export interface Run {
  /** What `--import` takes. */
  readonly register: string;
  /** A file of this folder. */
  readonly program: string;
  readonly args?: readonly string[];
  /** Written as politely.json into the working directory; none when absent. */
  readonly policy?: object | string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a program under `--import` in a folder of its own. One that hangs is killed after 20 s, and has no code then. */
export async function runProgram({ register, program, args = [], policy, env = {} }: Run): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), "politely-program-"));
  if (policy !== undefined) {
    writeFileSync(join(folder, "politely.json"), typeof policy === "string" ? policy : JSON.stringify(policy));
  }
  const file = fileURLToPath(new URL(program, import.meta.url));
  // The runner's own NODE_OPTIONS are not the program's.
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const child = spawn(process.execPath, ["--import", register, file, ...args], {
    cwd: folder,
    env: { ...inherited, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LONGEST_MS,
    killSignal: "SIGKILL",
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  rmSync(folder, { recursive: true, force: true });
  const lines = stderr.split("\n").filter((line) => line.startsWith("politely"));
  return { code, stdout, stderr, lines };
}
