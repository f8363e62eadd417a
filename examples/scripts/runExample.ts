import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { guardedProcess } from "../../packages/politely/test/fleet/guardedProcess.js";

const examples = fileURLToPath(new URL("..", import.meta.url));

/** How an example ended, and what it said. */
export interface ExampleEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
}

/** How an example is run. */
export interface ExampleOptions {
  /** Ctrl-C is pressed once stdout and stderr together have this text. Default: never. */
  readonly interruptAt?: string;
  /** Added to the environment. Default none. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a compiled example as its npm script does, through the starter, in a process that ends with this one. */
export async function runExample(
  name: string,
  args: readonly string[],
  options: ExampleOptions = {},
): Promise<ExampleEnd> {
  const { interruptAt, env } = options;
  const beganAtMs = performance.now();
  const { child } = guardedProcess(process.execPath, ["scripts/example.mjs", `${name}/src/main.js`, ...args], {
    cwd: examples,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  let isInterrupted = interruptAt === undefined;
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8").on("data", (text: string) => {
      said[stream] += text;
      if (isInterrupted || interruptAt === undefined || !(said.stdout + said.stderr).includes(interruptAt)) return;
      isInterrupted = true;
      child.kill("SIGINT");
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...said, tookMs: performance.now() - beganAtMs };
}
