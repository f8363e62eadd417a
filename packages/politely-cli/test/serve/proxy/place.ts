import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, type Socket } from "node:net";
import { type Limiter, type LimiterEvent, type PolicyInput, politely } from "politely";
import { createProxy, type PacingProxy, type ProxyOptions } from "../../../src/serve/proxy/createProxy.js";

/** A proxy on 127.0.0.1 with a limiter of its own. Private targets are allowed unless said otherwise. */
export interface ProxyPlace extends AsyncDisposable {
  readonly proxy: PacingProxy;
  readonly limiter: Limiter;
  readonly port: number;
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly events: readonly LimiterEvent[];
  /** What it said of its own mistakes. */
  readonly complaints: readonly string[];
  /** What it said of requests. */
  readonly requests: readonly string[];
}

/** Starts one. The policy has to name loopback for it to be limited. */
export async function startProxy(
  policy: PolicyInput = {},
  options: Partial<ProxyOptions> & { readonly host?: string } = {},
): Promise<ProxyPlace> {
  const { host = "127.0.0.1", ...rest } = options;
  const limiter = politely(policy);
  const events: LimiterEvent[] = [];
  const complaints: string[] = [];
  const requests: string[] = [];
  limiter.subscribe((event) => events.push(event));
  const log = (line: string): void => void complaints.push(line);
  const logRequest = (line: string): void => void requests.push(line);
  const proxy = createProxy({ limiter, allowPrivate: true, log, logRequest, ...rest });
  proxy.server.listen(0, host);
  await once(proxy.server, "listening");
  const { port } = proxy.server.address() as AddressInfo;
  return {
    proxy,
    limiter,
    port,
    url: `http://127.0.0.1:${port}`,
    events,
    complaints,
    requests,
    async [Symbol.asyncDispose]() {
      await proxy.close();
      await limiter.close();
    },
  };
}

/** How a curl ended. */
export interface Curled {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the real curl, with no configuration of the machine's and no proxy but the one given. */
export async function curl(args: readonly string[], signal?: AbortSignal): Promise<Curled> {
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C" };
  const child = spawn("curl", ["-q", "-sS", "--max-time", "30", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  signal?.addEventListener("abort", kill, { once: true });
  const text = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (chunk: Buffer) => {
      text[name] += chunk.toString("latin1");
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  process.off("exit", kill);
  return { code, ...text };
}

/** Opens a connection and writes bytes as they are. */
export async function rawConnection(port: number, text: string): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text, "latin1");
  return socket;
}

/** Writes bytes and reads until the other side closes, or is silent for `quietMs`. */
export async function raw(port: number, text: string, quietMs = 1_500): Promise<string> {
  const socket = await rawConnection(port, text);
  let answer = "";
  await new Promise<void>((resolve) => {
    socket.setTimeout(quietMs, resolve);
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.once("close", () => resolve());
  });
  socket.destroy();
  return answer;
}

/** Resolves once `isTrue`, looking every few milliseconds; rejects after 10 s with `what`. */
export async function eventually(isTrue: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > deadlineMs) throw new Error(`Not within 10 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether the books of every host balance, and nothing waits or is in flight. */
export function isSettled(limiter: Limiter): boolean {
  return limiter.stats().every((row) => {
    const { asked, granted, refused, cancelled, expired, waiting, released, lapsed, inFlight } = row;
    const isBalanced =
      asked === granted + refused + cancelled + expired + waiting && granted === released + lapsed + inFlight;
    return isBalanced && waiting === 0 && inFlight === 0;
  });
}
