import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));

/** A `politely` in a process of its own. It ends with the process that started it. */
export interface CommandProcess {
  readonly child: ChildProcess;
  /** Resolves to how it ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

/** Who runs a command, and what it reads. */
export interface ChildOptions {
  /** Default: who runs the tests. */
  readonly uid?: number;
  readonly gid?: number;
  /** Default: nothing. */
  readonly stdin?: string;
}

/** Starts `politely get` in a folder. It says nothing but errors. */
export function startGet(cwd: string, args: readonly string[], options: ChildOptions = {}): CommandProcess {
  return startCommand(cwd, ["get", "-q", ...args], options);
}

/** Starts the built command in a folder. */
export function startCommand(cwd: string, args: readonly string[], options: ChildOptions = {}): CommandProcess {
  const { stdin, ...user } = options;
  const child = spawn(process.execPath, [command, ...args], { cwd, stdio: ["pipe", "pipe", "pipe"], ...user });
  // It may end before it has read all of it.
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin ?? "");
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (chunk: Buffer) => {
      text[name] += chunk.toString();
    });
  }
  const kill = (): void => {
    child.kill("SIGKILL");
  };
  process.once("exit", kill);
  const end = async () => {
    const [code] = (await once(child, "close")) as [number | null];
    process.off("exit", kill);
    return { code, ...text };
  };
  return { child, ended: end() };
}
