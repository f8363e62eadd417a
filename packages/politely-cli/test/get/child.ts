import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));

/** A `politely get` in a process of its own. It ends with the process that started it. */
export interface GetProcess {
  readonly child: ChildProcess;
  /** Resolves to how it ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

/** Starts the built command in a folder. It says nothing but errors. */
export function startGet(cwd: string, args: readonly string[]): GetProcess {
  const child = spawn(process.execPath, [command, "get", "-q", ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
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
