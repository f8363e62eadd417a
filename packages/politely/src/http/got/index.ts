import type { AnyLimiter } from "../../sharedTypes.js";
import type { FetchOptions } from "../../types.js";
import { type Exchange, exchangeOf } from "../exchange.js";
import type { Flight } from "../flight.js";
import { type Answer, before, follow, hear, type SentRequest } from "../node/follow.js";
import { type ConnectionOptions, PACED, urlOf } from "../node/paceRequest.js";

/** The part of got this adapter calls. What `got.extend` makes fits as well. */
export interface GotLike {
  readonly defaults: { readonly mutableDefaults: boolean };
  extend(options: object): unknown;
}

/** The normalised options of one hop, as far as they matter here. */
interface GotOptions {
  readonly headers: Record<string, string | readonly string[] | undefined>;
  readonly context?: { readonly politely?: FetchOptions };
  readonly signal?: AbortSignal | undefined;
  readonly hooks: { beforeRequest: BeforeRequest[] };
  /** What sends: the `request` of the options, or else Node's own for the protocol of the URL. */
  getRequestFunction: () => Send | undefined;
  getFallbackRequestFunction(): Send | undefined;
}

type BeforeRequest = (options: GotOptions) => void;
type Handler = (options: GotOptions | undefined, next: (options: GotOptions | undefined) => unknown) => unknown;

/** Sends one request, as `http.request` does: got gives it the URL first, got's cache has the URL inside the options. */
type Send = (place: URL | UrlParts, ...more: unknown[]) => Sent | PromiseLike<Sent> | undefined;

interface UrlParts {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: string | number | null;
  readonly path: string;
}

/** A request of Node's on its way, or an answer that needed none. */
type Sent = SentRequest | Answer;

interface NodeJsEmitter {
  once(event: "close", listener: () => void): unknown;
}

/** What got says of itself where nobody says otherwise. */
const GOT_AGENT = "got (https://github.com/sindresorhus/got)";

/** The hooks of this adapter, each with its exchange. */
const exchangeOfHook = new WeakMap<BeforeRequest, Exchange>();

/**
 * Makes a got instance whose requests are paced by `limiter` and tell it what was answered. The given one stays as it is.
 *
 * Each redirect, and each of got's own retries, waits its turn at its own host; `http.retry` of the policy is left to got.
 * Got's timeouts start at the grant of each. A place is kept until the body has ended, also that of a stream; one that
 * nobody reads gives it back after 5 s. An answer from got's cache takes nothing. Cancelling leaves the queue.
 * `context.politely` of a call says how it waits.
 *
 * A refusal of the limiter arrives as got reports every failure: a `RequestError` with the limiter's `code`, and its error
 * as `cause`. Throws `TypeError` when `limiter` is none. The same limiter twice paces once.
 */
export function politeGot<Instance extends GotLike>(got: Instance, limiter: AnyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeGot");
  const handler: Handler = (options, next) => {
    if (options === undefined) return next(options);
    const waits = new Set<AbortController>();
    const { hooks } = options;
    // Pages of one listing hand their hooks on. The last one sees what all others have made of the options.
    const others = hooks.beforeRequest.filter((hook) => exchangeOfHook.get(hook) !== exchange);
    hooks.beforeRequest = [...others, hookFor(exchange, waits)];
    const result = next(options);
    leaveOnCancel(result, () => {
      for (const wait of waits) wait.abort();
    });
    return result;
  };
  return got.extend({ handlers: [handler], mutableDefaults: got.defaults.mutableDefaults }) as Instance;
}

/** Runs before each hop and each try of one call, with the options of that. `waits` has those that wait at the moment. */
function hookFor(exchange: Exchange, waits: Set<AbortController>): BeforeRequest {
  let last: Flight | undefined;
  const hook: BeforeRequest = (options) => {
    const ownAgent = introduce(exchange, options);
    const getInner = options.getRequestFunction.bind(options);
    const send: Send = async (place, ...more) => {
      // Got goes on to the next hop at the headers of a redirect. That must not wait for the rest of this one.
      last?.done();
      const { signal, context } = options;
      const wait = new AbortController();
      waits.add(wait);
      const both = signal === undefined ? wait.signal : AbortSignal.any([signal, wait.signal]);
      const url = place instanceof URL ? place.href : String(urlOf(place, { ...place, host: place.hostname }));
      const flight = await exchange
        .admit({ url, signal: both, ownAgent, options: context?.politely })
        .finally(() => waits.delete(wait));
      last = flight;
      const { clock } = exchange.pacer;
      try {
        const connection = [place, ...more].find((each) => typeof each === "object" && !(each instanceof URL));
        if (connection !== undefined) (connection as ConnectionOptions)[PACED] = true;
        const sent =
          (await getInner()?.(place, ...more)) ?? (await options.getFallbackRequestFunction()?.(place, ...more));
        if (sent === undefined) throw new TypeError(`got has no way to send a request to ${url}.`);
        if ("statusCode" in sent) hear(sent, flight, clock);
        else follow(sent, flight, clock);
        return sent;
      } catch (error) {
        flight.failed(error);
        throw error;
      }
    };
    options.getRequestFunction = () => send;
  };
  exchangeOfHook.set(hook, exchange);
  return hook;
}

/** Sets the policy's User-Agent unless the caller has one; gives the caller's. */
function introduce({ identity }: Exchange, { headers }: GotOptions): () => string | undefined {
  const agent = headers["user-agent"];
  const own = typeof agent === "string" && agent !== GOT_AGENT ? agent : undefined;
  if (own === undefined && identity.userAgent !== undefined) headers["user-agent"] = identity.userAgent;
  return () => own;
}

/** Calls `leave` when a call is cancelled. Its promise is not waited for: a failure nobody handles would look handled. */
function leaveOnCancel(result: unknown, leave: () => void): void {
  if (typeof result !== "object" || result === null) return;
  if ("cancel" in result) before(result as { cancel(): void }, "cancel", leave);
  // A stream that is destroyed, and one that is done.
  else if ("once" in result) (result as NodeJsEmitter).once("close", leave);
}
