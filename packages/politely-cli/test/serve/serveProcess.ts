import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { until } from "./started.js";

const command = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));

/** A `politely serve` in a process of its own. It ends with the process that started it. */
export interface ServeProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  /** `http://127.0.0.1:PORT` of the API. */
  readonly url: string;
  /** The same of the proxy; empty without one. */
  readonly proxyUrl: string;
  /** What it has written so far. */
  stderr(): string;
  readonly ended: Promise<number | null>;
}

/** Starts the built command on free ports, and waits until it listens or ends. */
export async function startServe(
  cwd: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ServeProcess> {
  const child = spawn(process.execPath, [command, "serve", "--port", "0", "--proxy-port", "0", ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  let text = "";
  child.stderr.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ended = once(child, "close").then(([code]) => {
    process.off("exit", kill);
    return code as number | null;
  });
  await until(() => text.includes("\n") || child.exitCode !== null, "the service listens", 40_000);
  const [, url = ""] = /page at (http:\S+?)[,;]/.exec(text) ?? [];
  const [, proxyUrl = ""] = /proxy at (http:\S+?)[,;]/.exec(text) ?? [];
  return {
    child,
    url,
    proxyUrl,
    stderr: () => text,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Sends JSON to a service. */
export async function post(
  url: string,
  path: string,
  body: unknown,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
}
