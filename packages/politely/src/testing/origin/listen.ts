import { type RunningServer, type ServedAnswer, type ServedRequest, serveHttp } from "../nodeServer.js";
import type { Incoming } from "./site.js";
import type { Send } from "./virtualFetch.js";

interface StreamModule {
  readonly pipeline: (from: ReadableStream<Uint8Array>, to: ServedAnswer) => Promise<void>;
}

const nodeStreams: string = "node:stream/promises";

/** Serves what `send` answers over HTTP on the loopback address. Rejects with the system's error when the port is taken. */
export async function listenOn(port: number, send: Send): Promise<RunningServer> {
  const { pipeline } = (await import(/* @vite-ignore */ nodeStreams)) as StreamModule;
  return serveHttp({ host: "127.0.0.1", port }, (request, answer) => void serve(request, answer));

  async function serve(request: ServedRequest, answer: ServedAnswer): Promise<void> {
    answer.sendDate = false;
    const gone = new AbortController();
    answer.on("close", () => gone.abort());
    const incoming = incomingOf(request);
    if (incoming === undefined) {
      answer.writeHead(400);
      answer.end();
      return;
    }
    try {
      const response = await send(incoming, gone.signal);
      answer.writeHead(response.status, Object.fromEntries(response.headers)).flushHeaders();
      if (response.body === null) answer.end();
      else await pipeline(response.body, answer).catch(() => undefined);
    } catch (error) {
      if (error instanceof TypeError && error.cause !== undefined) request.socket.resetAndDestroy();
      else if (!gone.signal.aborted) {
        answer.writeHead(500, { "content-type": "text/plain;charset=utf-8" });
        answer.end(`${String(error)}\n`);
      }
    }
  }
}

/** Undefined for what names no host. */
function incomingOf({ method = "GET", url = "/", headers }: ServedRequest): Incoming | undefined {
  const base = `http://${String(headers.host)}`;
  if (!URL.canParse(url, base)) return undefined;
  const fields = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]);
  return {
    url: new URL(url, base),
    method,
    headers: Object.freeze(Object.fromEntries(fields) as Record<string, string>),
  };
}
