import { isRedirect, MAX_REDIRECTS, nextHop } from "../../http/redirect.js";
import { type RunningServer, type ServedAnswer, type ServedRequest, serveHttp } from "../nodeServer.js";
import { type Incoming, isReset } from "./site.js";

/** Gives the answer of whoever plays the host of the URL. */
export type Send = (incoming: Incoming, signal: AbortSignal | undefined) => Promise<Response>;

/**
 * Does what `fetch` does, with virtual sites on the other end. The body of the request is not read.
 *
 * Rejects as Node's does: `TypeError` for what is no request, `signal.reason` on abort, and a `TypeError` with the cause
 * for a broken connection, more than 20 redirects, or one that is not allowed. What the test did wrong rejects with its
 * own error.
 */
export async function virtualFetch(send: Send, input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const signal = init?.signal === undefined && input instanceof Request ? input.signal : (init?.signal ?? undefined);
  // The signal is listened to here; a second listener inside the request would only cost time.
  const request = new Request(input, { ...init, signal: null });
  let next = incomingOf(request.url, request.method, request.headers);
  if (!/^https?:$/.test(next.url.protocol)) throw fetchFailed("unknown scheme");
  for (let hops = 0; ; hops += 1) {
    const response = await send(next, signal);
    const location = isRedirect(response.status) ? response.headers.get("location") : null;
    if (location === null || request.redirect === "manual") return placed(response, next.url, hops > 0);
    // Nobody will read it, and it must not stay in flight.
    await response.body?.cancel();
    if (request.redirect === "error") throw fetchFailed("unexpected redirect");
    if (hops >= MAX_REDIRECTS) throw fetchFailed("redirect count exceeded");
    next = following(next, response.status, location);
  }
}

function incomingOf(url: string, method: string, headers: Headers): Incoming {
  return { url: new URL(url), method, headers: Object.freeze(Object.fromEntries(headers)) };
}

function following({ url, method, headers }: Incoming, status: number, location: string): Incoming {
  try {
    const hop = nextHop({ url: url.href, method, headers: new Headers(headers), hasBody: false }, status, location);
    return incomingOf(hop.url, hop.method, hop.headers);
  } catch {
    throw fetchFailed("URL scheme must be a HTTP(S) scheme");
  }
}

function fetchFailed(message: string): TypeError {
  return new TypeError("fetch failed", { cause: new Error(message) });
}

/** Where responses came from. */
const places = new WeakMap<object, { readonly url: string; readonly redirected: boolean }>();

/**
 * What a response of `fetch` says of itself. It stands between the response and its class, as the class itself would:
 * properties of the response's own would hide what a wrapper puts in between after it.
 */
const placedPrototype = {
  type: "basic",
  get url(): string {
    return places.get(this)?.url ?? "";
  },
  get redirected(): boolean {
    return places.get(this)?.redirected ?? false;
  },
  clone(this: Response): Response {
    return placed(Response.prototype.clone.call(this), new URL(this.url), this.redirected);
  },
};
Object.setPrototypeOf(placedPrototype, Response.prototype);

/** Gives a response what only `fetch` can give it: where it came from. Its clones have that too. */
function placed(response: Response, url: URL, redirected: boolean): Response {
  const bare = new URL(url);
  bare.hash = "";
  places.set(response, { url: bare.href, redirected });
  return Object.setPrototypeOf(response, placedPrototype) as Response;
}

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
    const incoming = readServed(request);
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
      if (isReset(error)) request.socket.resetAndDestroy();
      else if (!gone.signal.aborted) {
        answer.writeHead(500, { "content-type": "text/plain;charset=utf-8" });
        answer.end(`${String(error)}\n`);
      }
    }
  }
}

/** Undefined for what names no host. */
function readServed({ method = "GET", url = "/", headers }: ServedRequest): Incoming | undefined {
  const base = `http://${String(headers.host)}`;
  if (!URL.canParse(url, base)) return undefined;
  const fields = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]);
  return {
    url: new URL(url, base),
    method,
    headers: Object.freeze(Object.fromEntries(fields) as Record<string, string>),
  };
}
