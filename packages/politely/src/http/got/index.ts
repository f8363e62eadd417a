import type { AnyLimiter } from "../../sharedTypes.js";
import type { Clock, FetchOptions, HeadersLike } from "../../types.js";
import { freeUnread, type WaitingStream } from "../axios/unreadStream.js";
import { type Errand, type Exchange, exchangeOf } from "../exchange.js";
import type { Flight } from "../flight.js";

/** The part of got this adapter calls. What `got.extend` makes fits as well. */
export interface GotLike {
  readonly defaults: { readonly mutableDefaults: boolean };
  extend(options: object): unknown;
}

/** The normalised options of a call, as far as they matter here. */
interface GotOptions {
  request?: Send | undefined;
  readonly url?: string | URL | undefined;
  readonly headers: Record<string, string | readonly string[] | undefined>;
  readonly context?: { readonly politely?: FetchOptions };
  readonly signal?: AbortSignal | undefined;
  /** Node's own `request` for the protocol of `url`. */
  getFallbackRequestFunction(): Send | undefined;
}

type Handler = (options: GotOptions | undefined, next: (options: GotOptions | undefined) => unknown) => unknown;

/** Sends one request, as `http.request` does: got gives it the URL first, got's cache has the URL inside the options. */
type Send = (...args: readonly [URL | UrlParts, ...unknown[]]) => Sent | PromiseLike<Sent> | undefined;

interface UrlParts {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: string | number | null;
  readonly path: string;
}

/** A request of Node's on its way, or an answer that needed none. */
type Sent = SentRequest | Answer;

interface SentRequest {
  once(event: "response", listener: (answer: Answer) => void): unknown;
  once(event: "error", listener: (error: unknown) => void): unknown;
  once(event: "close", listener: () => void): unknown;
  destroy(error?: unknown): unknown;
}

interface Answer extends WaitingStream {
  readonly statusCode: number;
  readonly headers: HeadersLike;
  /** Whether all of it has arrived. */
  readonly complete?: boolean;
  /** Whether its connection is gone before that. */
  readonly aborted?: boolean;
  once(event: "end", listener: () => void): unknown;
}

/** What got says of itself where nobody says otherwise. */
const GOT_AGENT = "got (https://github.com/sindresorhus/got)";

/** Which exchange a polite sender belongs to, and what it sends with. */
const sendersOf = new WeakMap<Send, { readonly exchange: Exchange; readonly inner: Send | undefined }>();

/**
 * Makes a got instance whose requests are paced by `limiter` and tell it what was answered. The given one stays as it is.
 *
 * Each redirect, and each of got's own retries, waits its turn at its own host; `http.retry` of the policy is left to got.
 * Got's timeouts start at the grant of each. A place is kept until the body has ended, also that of a stream; one that
 * nobody begins to read gives it back after 5 s. An answer from got's cache takes nothing. Cancelling leaves the queue.
 * `context.politely` of a call says how it waits.
 *
 * A refusal of the limiter arrives as got reports every failure: a `RequestError` with the limiter's `code`, and its error
 * as `cause`. Throws `TypeError` when `limiter` is none. The same limiter twice paces once.
 */
export function politeGot<Instance extends GotLike>(got: Instance, limiter: AnyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeGot");
  const handler: Handler = (options, next) => (options === undefined ? next(options) : travel(exchange, options, next));
  return got.extend({ handlers: [handler], mutableDefaults: got.defaults.mutableDefaults }) as Instance;
}

/** Makes one call with all its redirects and retries. */
function travel(exchange: Exchange, options: GotOptions, next: Parameters<Handler>[1]): unknown {
  const known = options.request === undefined ? undefined : sendersOf.get(options.request);
  // Pages of one listing hand their options on, sender included.
  const inner = known?.exchange === exchange ? known.inner : options.request;
  const ownAgent = introduce(exchange, options);
  const waits = new Set<AbortController>();
  let last: Flight | undefined;
  const send: Send = async (...args) => {
    // Got goes on to the next hop at the headers of a redirect. That must not wait for the rest of this one.
    last?.done();
    const url = urlOf(args[0]);
    const { signal, context } = options;
    const flight = await admit(exchange, { url, signal, ownAgent, options: context?.politely }, waits);
    last = flight;
    try {
      const sent = (await inner?.(...args)) ?? (await nativeSend(options, url)(...args));
      if (sent === undefined) throw new TypeError(`got has no way to send a request to ${url}.`);
      watch(sent, flight, exchange.pacer.clock);
      return sent;
    } catch (error) {
      flight.failed(error);
      throw error;
    }
  };
  sendersOf.set(send, { exchange, inner });
  options.request = send;
  const result = next(options);
  leaveOnCancel(result, () => {
    for (const wait of waits) wait.abort();
  });
  return result;
}

/** Sets the policy's User-Agent unless the caller has one; gives the caller's. */
function introduce({ identity }: Exchange, { headers }: GotOptions): () => string | undefined {
  const agent = headers["user-agent"];
  const own = typeof agent === "string" && agent !== GOT_AGENT ? agent : undefined;
  if (own === undefined && identity.userAgent !== undefined) headers["user-agent"] = identity.userAgent;
  return () => own;
}

/** Waits for the grant; leaves the queue with the caller's signal, and when somebody aborts what is in `waits`. */
async function admit(exchange: Exchange, errand: Errand, waits: Set<AbortController>): Promise<Flight> {
  const wait = new AbortController();
  const follow = (): void => wait.abort(errand.signal?.reason);
  if (errand.signal?.aborted === true) follow();
  errand.signal?.addEventListener("abort", follow, { once: true });
  waits.add(wait);
  try {
    return await exchange.admit({ ...errand, signal: wait.signal });
  } finally {
    waits.delete(wait);
    errand.signal?.removeEventListener("abort", follow);
  }
}

/** Hears the answer of a request and frees its place with the last byte. */
function watch(sent: Sent, flight: Flight, clock: Clock): void {
  if ("statusCode" in sent) {
    hear(sent, flight, clock);
    return;
  }
  let answer: Answer | undefined;
  sent.once("response", (response) => {
    answer = response;
    hear(response, flight, clock);
  });
  sent.once("error", (error) => flight.failed(error));
  sent.once("close", () => {
    if (answer?.complete === false) flight.failed({ code: "ECONNRESET" });
    else flight.done();
  });
  // A request that is given up ends with the same error as one that the site tears off; they differ only here.
  const destroy = sent.destroy.bind(sent);
  sent.destroy = (error) => {
    // Got gives up what was torn off as well.
    if (error === undefined && answer?.aborted !== true) flight.done();
    else flight.failed(error ?? { code: "ECONNRESET" });
    return destroy(error);
  };
}

function hear(answer: Answer, flight: Flight, clock: Clock): void {
  const { statusCode, headers } = answer;
  flight.answered(statusCode, headers);
  answer.once("end", () => flight.done());
  freeUnread(answer, flight, clock);
}

/** Node's `request` for a URL, which after a redirect may be of another protocol than that of the call. */
function nativeSend(options: GotOptions, url: string): Send {
  const isSame = String(options.url).startsWith(new URL(url).protocol);
  const Options = options.constructor as new (input: string, init: undefined, defaults: GotOptions) => GotOptions;
  const own = isSame ? options : new Options(url, undefined, options);
  return own.getFallbackRequestFunction() ?? (() => undefined);
}

function urlOf(place: URL | UrlParts): string {
  if (place instanceof URL) return place.href;
  const { protocol, hostname, port, path } = place;
  const host = hostname.includes(":") && !hostname.startsWith("[") ? `[${hostname}]` : hostname;
  return `${protocol}//${host}${port === undefined || port === null || port === "" ? "" : `:${port}`}${path}`;
}

/** Calls `leave` when a call is cancelled. Its promise is not waited for: a failure nobody handles would look handled. */
function leaveOnCancel(result: unknown, leave: () => void): void {
  if (typeof result !== "object" || result === null) return;
  if ("cancel" in result && typeof result.cancel === "function") {
    const cancel = result.cancel.bind(result) as (...args: unknown[]) => unknown;
    result.cancel = (...args: unknown[]): unknown => {
      leave();
      return cancel(...args);
    };
  } else if ("once" in result && typeof result.once === "function") {
    // A stream that is destroyed, and one that is done.
    (result as SentRequest).once("close", leave);
  }
}
