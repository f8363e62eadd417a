import { checkNames } from "../core/checkNames.js";
import { PolitelyError } from "../errors.js";
import { showValue } from "../policy/showValue.js";
import type { RetryRules } from "../policy/types.js";
import type { Clock, FetchOptions, PoliteRequestInit } from "../types.js";
import type { Exchange } from "./exchange.js";
import type { Flight } from "./flight.js";
import { plainResponse } from "./plainResponse.js";
import { withMaxWait } from "./retrier.js";
import { type TimeLimit, Timeouts, timeoutMsOf } from "./timeout.js";
import { CallDispatcher, type CallWay, type Dispatcher, dispatcherOf } from "./undici/nodeFetch.js";

/** Sends one request; the global `fetch` fits. */
export type Send = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What a client says of a call beside what `fetch` is told. */
export interface CallExtras {
  /** Sends it. Default what sends all requests. */
  readonly send?: Send | undefined;
  /** A time limit of the client's own. */
  readonly limit?: TimeLimit | undefined;
  /** The policy's `retry` does not apply, since the client has retries of its own. Default false. */
  readonly isOnce?: boolean;
}

/** A call of `fetch`, with all its repetitions. */
interface Call extends Pick<CallExtras, "send"> {
  readonly input: string | URL | Request;
  readonly request: Request | undefined;
  readonly init: PoliteRequestInit | undefined;
  readonly options: FetchOptions | undefined;
  readonly signal: AbortSignal | undefined;
  readonly limits: readonly TimeLimit[];
  /** The last one that was granted. */
  flight: Flight | undefined;
}

const OPTIONS = ["intent", "scopes", "timeout", "maxWait", "priority", "cost"];
const REFUSALS: readonly string[] = ["POLITELY_DEADLINE", "POLITELY_QUEUE_FULL", "POLITELY_CAPACITY"];
const USER_AGENT = "user-agent";
const HTTP = /^\s*https?:/i;
/** Under this name an init says who sends it, so that a global `fetch` which leads back to that one is noticed. */
const SENDER = Symbol("politely.sender");

const NO_EXTRAS: CallExtras = {};
const NO_LIMITS: readonly TimeLimit[] = [];

/** Every `fetch` of a limiter. */
const politeOnes = new WeakSet<object>();

/**
 * The standard `fetch`, paced and listening. What leads to no host, as `data:` and `blob:`, is left to the platform.
 *
 * Node's own `fetch` is called at once, and each of its hops waits in a dispatcher. Any other is called when its first host has
 * its turn, and follows redirects unseen.
 */
export class PoliteFetch {
  /** What the global `fetch` was when this was made. */
  readonly #before = globalThis.fetch;

  constructor(
    readonly exchange: Exchange,
    /** Sends requests; undefined for the global `fetch` at the time of each call. */
    readonly sender?: Send,
  ) {
    politeOnes.add(this.fetch);
  }

  /** Never throws; bound, so that it may be passed around. */
  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> => {
    const answer = this.call(input, init, NO_EXTRAS);
    return this.exchange.pacer.http().refusal === "response" ? answer.catch(refusalResponse) : answer;
  };

  /** Remembers another function that does the same. */
  isAlso(fetch: object): void {
    politeOnes.add(fetch);
  }

  /** The same for a client. */
  call(input: string | URL | Request, init: PoliteRequestInit | undefined, extras: CallExtras): Promise<Response> {
    try {
      if ((init as { readonly [SENDER]?: unknown } | null | undefined)?.[SENDER] === this) {
        const before = this.#before;
        return before(input, init);
      }
      const call = callOf(input, init, extras);
      const mayRepeat = extras.isOnce !== true && this.exchange.pacer.http().retry !== undefined;
      const rules = mayRepeat ? this.#retryRules(call) : undefined;
      return rules === undefined ? this.#attempt(call, call.options) : this.#repeat(call, rules);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Sends a request that was admitted already, by what sends all others. */
  readonly send: Send = (input, init) => {
    const send = this.#sendNow();
    if (this.sender !== undefined) return send(input, init);
    return send(input, { ...init, [SENDER]: this } as RequestInit);
  };

  /** Where a limiter has taken the place of the global `fetch`, that is the one from before. */
  #sendNow(): Send {
    if (this.sender !== undefined) return this.sender;
    const { fetch } = globalThis;
    return politeOnes.has(fetch) ? this.#before : fetch;
  }

  #retryRules(call: Call): RetryRules | undefined {
    if (isStream(call.init?.body) || !HTTP.test(urlOf(call.input))) return undefined;
    return this.exchange.retrier.rulesFor(methodOf(call));
  }

  #repeat(call: Call, rules: RetryRules): Promise<Response> {
    const { input, request, signal, options } = call;
    const attempt = (maxWaitMs: number | undefined): Promise<Response> => {
      // The body of a Request goes away with the first sending.
      if (request?.body) Object.assign(call, { input: request.clone() });
      return this.#attempt(call, withMaxWait(options, maxWaitMs));
    };
    return this.exchange.retrier.run<Response>(
      {
        url: urlOf(input).trim(),
        method: methodOf(call),
        signal,
        options,
        attempt,
        discard,
        status: (response) => response.status,
        headers: (response) => response.headers,
        letGo: () => call.flight?.letGo(),
      },
      rules,
    );
  }

  #attempt(call: Call, options: FetchOptions | undefined): Promise<Response> {
    const send = call.send ?? this.#sendNow();
    const way = new Way(call, options, this.exchange.pacer.clock);
    const target = dispatcherOf(send, way.given, call.request);
    return target === undefined ? this.#sendPlainly(call, way, send) : this.#sendByNode(call, way, send, target);
  }

  #sendByNode(call: Call, way: Way, send: Send, target: Dispatcher): Promise<Response> {
    const { request, init } = call;
    const dispatcher = new CallDispatcher(this.exchange, target, way);
    const extra: Record<string, unknown> = { dispatcher };
    if (way.timeouts !== undefined) extra.signal = way.signal;
    if (request !== undefined && Object.keys(init ?? {}).every((name) => name === "politely")) {
      // An init that says anything takes the referrer of a Request away.
      Object.assign(extra, { referrer: request.referrer, referrerPolicy: request.referrerPolicy });
    }
    const { underway } = this.exchange;
    // Not async, since each promise more is one for every request.
    return send(call.input, initWith(init, extra)).then(
      (response) => {
        underway.end(dispatcher);
        return response;
      },
      (error: unknown) => {
        underway.end(dispatcher);
        throw dispatcher.refusal === undefined ? error : dispatcher.refusal.error;
      },
    );
  }

  async #sendPlainly({ input, request, init, signal }: Call, way: Way, send: Send): Promise<Response> {
    const { exchange } = this;
    const { options, given, timeouts } = way;
    const url = urlOf(input);
    if (URL.canParse(url) && !HTTP.test(url)) return send(input, init);
    const headers = new Headers(init?.headers ?? request?.headers);
    const ownAgent = (): string | null => headers.get(USER_AGENT);
    const flight = await exchange.enter({ url, signal, ownAgent, options, dispatcher: given });
    way.granted(flight);
    const { userAgent } = exchange.identity;
    const isNamed = userAgent !== undefined && !headers.has(USER_AGENT);
    if (isNamed) headers.set(USER_AGENT, userAgent);
    const extra = {
      politely: undefined,
      ...(isNamed ? { headers } : {}),
      ...(timeouts === undefined ? {} : { signal: way.signal }),
      ...(send === globalThis.fetch ? { [SENDER]: this } : {}),
    };
    try {
      const sent = exchange.sendOwn(url, flight, () => send(input, initWith(init, extra)));
      const response = await (timeouts?.race(sent) ?? sent);
      way.answered();
      return plainResponse(response, flight);
    } catch (error) {
      flight.failed(error, error instanceof Error && error.cause !== undefined);
      throw error;
    }
  }
}

function callOf(input: string | URL | Request, init: PoliteRequestInit | undefined, extras: CallExtras): Call {
  if (init !== undefined && typeof init !== "object") {
    throw new TypeError(`init must be an object; got ${showValue(init)}. Leave it out or write { method: "POST" }.`);
  }
  const request = isRequest(input) ? input : undefined;
  const { send, limit } = extras;
  const options = init?.politely;
  if (options !== undefined) checkNames(options, OPTIONS, "init.politely");
  const ms = timeoutMsOf(options?.timeout);
  const limits = ms === undefined ? NO_LIMITS : [{ ms }];
  const signal = (init?.signal === undefined ? request?.signal : init.signal) ?? undefined;
  return {
    input,
    request,
    init,
    options,
    signal,
    send,
    limits: limit === undefined ? limits : [...limits, limit],
    flight: undefined,
  };
}

/** A refusal by the limiter as an answer, for clients that understand nothing else. Throws what is none. */
function refusalResponse(error: unknown): Response {
  if (!(error instanceof PolitelyError) || !REFUSALS.includes(error.code)) throw error;
  const { waitMs } = error as { readonly waitMs?: number };
  const headers = new Headers({ "x-should-retry": "false" });
  if (waitMs !== undefined && Number.isFinite(waitMs)) headers.set("retry-after", String(Math.ceil(waitMs / 1000)));
  return new Response(error.message, { status: 429, statusText: "Too Many Requests", headers });
}

/** How one attempt is made. */
class Way implements CallWay {
  readonly given: unknown;
  readonly timeouts: Timeouts | undefined;
  /** The caller's and that of the timeouts. */
  readonly signal: AbortSignal | undefined;

  constructor(
    readonly call: Call,
    readonly options: FetchOptions | undefined,
    clock: Clock,
  ) {
    const { init, signal, limits } = call;
    this.given = (init as { readonly dispatcher?: unknown } | undefined)?.dispatcher;
    this.timeouts = limits.length === 0 ? undefined : new Timeouts(clock, limits);
    this.signal = this.timeouts === undefined ? signal : this.timeouts.with(signal);
  }

  /** A hop may go: its timeouts run from now on. */
  granted(flight: Flight): void {
    this.call.flight = flight;
    flight.signal = this.call.signal;
    this.timeouts?.start(flight);
  }

  answered(): void {
    this.timeouts?.headersCame();
  }
}

/** An init that says something more. A class, or another Request, is asked for what it says itself. */
function initWith(init: PoliteRequestInit | undefined, extra: object): RequestInit {
  if (!init) return extra;
  const prototype: unknown = Object.getPrototypeOf(init);
  if (prototype === Object.prototype || prototype === null) return { ...init, ...extra };
  return new Proxy(init, {
    get: (target, name): unknown => Reflect.get(Object.hasOwn(extra, name) ? extra : target, name),
  });
}

function methodOf({ init, request }: Call): string {
  return String(init?.method ?? request?.method ?? "GET").toUpperCase();
}

function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && ("getReader" in body || Symbol.asyncIterator in body);
}

function urlOf(input: string | URL | Request): string {
  return isRequest(input) ? input.url : String(input);
}

/** Also true for the Request class of another copy of undici, which `instanceof` does not know. */
function isRequest(input: unknown): input is Request {
  if (typeof input !== "object" || input === null) return false;
  return "url" in input && typeof input.url === "string" && "headers" in input && "method" in input;
}

/** Nobody wants the body; a stream that is read already is let be. */
function discard({ body }: Response): void {
  if (typeof body?.cancel === "function" && !body.locked) body.cancel().catch(() => undefined);
}
