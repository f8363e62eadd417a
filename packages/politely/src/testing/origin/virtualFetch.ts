import type { Clock } from "../../types.js";
import { isWhole, type Sending, sendBody } from "./body.js";
import type { Breakage, Exchange, Receiver } from "./exchange.js";
import type { Incoming, Outgoing } from "./host.js";

/** Begins an exchange with whoever plays the host of the URL. */
export type Begin = (incoming: Incoming, receiver: Receiver) => Exchange;

const maxRedirects = 20;
const redirectStatuses: readonly number[] = [301, 302, 303, 307, 308];

/** Fields that must not follow a redirect to somebody else. */
const privateFields = ["authorization", "proxy-authorization", "cookie", "host"];

/** Fields that describe a body, which a redirect to GET drops. */
const bodyFields = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];

/** A call of `fetch`, understood. */
interface Call {
  readonly incoming: Incoming;
  readonly redirect: RequestRedirect;
  readonly signal: AbortSignal | undefined;
}

/**
 * Does what `fetch` does, with virtual sites on the other end. The body of the request is not read.
 *
 * Rejects as Node's does: `TypeError` for what is no request, `signal.reason` on abort, and a `TypeError` with the cause
 * for a broken connection, more than 20 redirects, or one that is not allowed. What the test did wrong rejects with its
 * own error.
 */
export async function virtualFetch(
  begin: Begin,
  clock: Clock,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const { incoming, redirect, signal } = readCall(input, init);
  let next = incoming;
  for (let hops = 0; ; hops += 1) {
    const response = await oneHop(begin, clock, next, signal);
    const location = redirectStatuses.includes(response.status) ? response.headers.get("location") : null;
    if (location === null || redirect === "manual") return dressed(response, next.url, hops > 0);
    // Nobody will read it, and it must not stay in flight.
    await response.body?.cancel();
    if (redirect === "error") throw fetchFailed(new Error("unexpected redirect"));
    if (hops >= maxRedirects) throw fetchFailed(new Error("redirect count exceeded"));
    next = redirected(next, response.status, location);
  }
}

function readCall(input: string | URL | Request, init: RequestInit | undefined): Call {
  const signal = init?.signal === undefined && input instanceof Request ? input.signal : (init?.signal ?? undefined);
  // The signal is listened to here; a second listener inside the request would only cost time.
  const request = new Request(input, { ...init, signal: null });
  const url = new URL(request.url);
  if (!isHttp(url)) throw fetchFailed(new Error("unknown scheme"));
  const incoming = { url, method: request.method, headers: Object.freeze(Object.fromEntries(request.headers)) };
  return { incoming, redirect: request.redirect, signal };
}

function oneHop(begin: Begin, clock: Clock, incoming: Incoming, signal: AbortSignal | undefined): Promise<Response> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    let sending: Sending | undefined;
    const onAbort = (): void => {
      done();
      exchange.end();
      sending?.fail(signal?.reason);
      reject(signal?.reason);
    };
    const done = (): void => signal?.removeEventListener("abort", onAbort);
    const exchange = begin(incoming, {
      answer(outgoing) {
        const { body } = outgoing;
        if (body === undefined || isWhole(outgoing)) {
          done();
          resolve(responseOf(outgoing, body === undefined ? null : (body.content as Uint8Array<ArrayBuffer>)));
          return;
        }
        sending = sendBody(outgoing, body, clock, () => {
          done();
          exchange.end();
        });
        resolve(responseOf(outgoing, sending.stream));
      },
      break(code) {
        done();
        reject(fetchFailed(connectionError(code)));
      },
      fail(error) {
        done();
        reject(error);
      },
    });
    signal?.addEventListener("abort", onAbort);
    exchange.start();
  });
}

function responseOf({ status, headers }: Outgoing, body: BodyInit | null): Response {
  return new Response(body, { status, headers });
}

/** Gives a response what only `fetch` can give it: where it came from. Its clones have that too. */
function dressed(response: Response, url: URL, isRedirected: boolean): Response {
  const bare = new URL(url);
  bare.hash = "";
  return withPlace(response, { url: bare.href, redirected: isRedirected });
}

/** Where a response came from. */
interface Place {
  readonly url: string;
  readonly redirected: boolean;
}

const places = new WeakMap<object, Place>();

/**
 * What a response of `fetch` says of itself. It stands between the response and its class, as the class itself would:
 * properties of the response's own would hide what a wrapper puts in between after it.
 */
const placed = Object.create(Response.prototype, {
  url: { configurable: true, get: urlOf },
  redirected: { configurable: true, get: redirectedOf },
  type: { configurable: true, get: () => "basic" },
  clone: { configurable: true, writable: true, value: cloneOf },
}) as object;

function withPlace(response: Response, place: Place | undefined): Response {
  if (place !== undefined) places.set(response, place);
  return Object.setPrototypeOf(response, placed) as Response;
}

function urlOf(this: Response): string {
  return places.get(this)?.url ?? "";
}

function redirectedOf(this: Response): boolean {
  return places.get(this)?.redirected ?? false;
}

function cloneOf(this: Response): Response {
  return withPlace(Response.prototype.clone.call(this), places.get(this));
}

/** The request that follows a redirect, by the rules of `fetch`. */
function redirected({ url, method, headers }: Incoming, status: number, location: string): Incoming {
  const next = locationOf(location, url);
  const turnsToGet =
    ((status === 301 || status === 302) && method === "POST") ||
    (status === 303 && method !== "GET" && method !== "HEAD");
  const dropped = [...(turnsToGet ? bodyFields : []), ...(next.origin === url.origin ? [] : privateFields)];
  const kept = Object.entries(headers).filter(([name]) => !dropped.includes(name));
  return { url: next, method: turnsToGet ? "GET" : method, headers: Object.freeze(Object.fromEntries(kept)) };
}

function locationOf(location: string, from: URL): URL {
  let next: URL;
  try {
    next = new URL(location, from);
  } catch (error) {
    throw fetchFailed(error);
  }
  if (!isHttp(next)) throw fetchFailed(new Error("URL scheme must be a HTTP(S) scheme"));
  if (next.hash === "") next.hash = from.hash;
  return next;
}

function isHttp(url: URL): boolean {
  return url.protocol === "http:" || url.protocol === "https:";
}

function fetchFailed(cause: unknown): TypeError {
  return new TypeError("fetch failed", { cause });
}

function connectionError(code: Breakage): Error {
  const [syscall, errno] = code === "ECONNRESET" ? ["read", -104] : ["connect", -111];
  return Object.assign(new Error(`${syscall} ${code}`), { code, errno, syscall });
}
