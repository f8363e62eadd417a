import { PolitelyError } from "../../errors.js";
import { durationUs } from "../../policy/duration.js";
import type { FetchOptions, KeyLimiter, Limiter } from "../../types.js";
import { type Exchange, exchangeOf } from "../exchange.js";
import { PoliteFetch, type Send } from "../fetch.js";

/** The part of ky this adapter calls. What `ky.create` and `ky.extend` make fits as well. */
export interface KyLike {
  (input: string, options: object): PromiseLike<unknown>;
  create(options: object): KyLike;
  extend(options: object): KyLike;
}

/** The options of a call, or the defaults of an instance, as far as they matter here. */
interface KyOptions {
  readonly timeout?: number | false | undefined;
  readonly fetch?: Send | undefined;
  readonly retry?: number | RetryOptions | undefined;
  readonly context?: { readonly politely?: FetchOptions } | undefined;
}

interface RetryOptions {
  readonly shouldRetry?: (state: { readonly error: unknown }) => unknown;
}

type Call = (input: unknown, options?: KyOptions) => unknown;

/** What ky waits where nobody says otherwise. */
const DEFAULT_TIMEOUT_MS = 10_000;
const METHODS: ReadonlySet<string | symbol> = new Set(["get", "post", "put", "patch", "head", "delete"]);
/** Which exchanges the calls of an instance go through. */
const exchangesOf = new WeakMap<object, readonly Exchange[]>();

/**
 * Makes a ky instance whose requests are paced by `limiter` and tell it what was answered. The given one stays as it is.
 *
 * Each redirect, and each of ky's own retries, waits its turn at its own host; `http.retry` of the policy is left to ky. A
 * `timeout` runs from the grant of each hop to its headers, and waiting does not count. A place is kept until the body has
 * arrived. Refusals of the limiter are thrown as they are and never retried. `context.politely` of a call says how it
 * waits. Instances that `create` and `extend` make of it are paced as well.
 *
 * Throws `TypeError` when `limiter` is none. The same limiter twice paces once.
 */
export function politeKy<Instance extends KyLike>(ky: Instance, limiter: Limiter | KeyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeKy");
  const exchanges = exchangesOf.get(ky) ?? [];
  if (exchanges.includes(exchange)) return ky;
  const courier = new KyCourier(exchange, ky);
  const polite = new Proxy<Instance>(ky, {
    apply: (target, _self, [input, options]: Parameters<Call>) =>
      (target as unknown as Call)(input, courier.prepare(options)),
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (METHODS.has(name)) {
        return (input: unknown, options?: KyOptions): unknown => (value as Call)(input, courier.prepare(options));
      }
      if (name !== "create" && name !== "extend") return value;
      return (options: object): unknown => politeKy((value as KyLike["create"])(options), limiter);
    },
  });
  exchangesOf.set(polite, [...exchanges, exchange]);
  return polite;
}

/** Sends the requests of one instance. */
class KyCourier {
  readonly #exchange: Exchange;
  readonly #defaults: KyOptions;

  constructor(
    exchange: Exchange,
    readonly ky: KyLike,
  ) {
    this.#exchange = withoutRetry(exchange);
    let defaults: KyOptions = {};
    ky.extend((inherited: KyOptions) => {
      defaults = inherited;
      return {};
    });
    this.#defaults = defaults;
  }

  /** The options of a call, with what makes it polite. Something that is no options is left for ky to refuse. */
  prepare(options: KyOptions = {}): KyOptions {
    const isOptions = typeof options === "object" && options !== null && !Array.isArray(options);
    const timeoutMs = isOptions ? (options.timeout ?? this.#defaults.timeout ?? DEFAULT_TIMEOUT_MS) : undefined;
    if (timeoutMs === undefined || (timeoutMs !== false && !(timeoutMs <= 2 ** 31 - 1))) return options;
    const own = options.fetch ?? this.#defaults.fetch;
    const send: Send = own ?? ((input, init) => globalThis.fetch(input, init));
    const polite = new PoliteFetch({
      exchange: this.#exchange,
      send: timeoutMs === false ? send : (input, init) => this.#sendWithin(timeoutMs, send, input, init),
      readTimeout: (value) => durationUs(value, "timeout") / 1000,
    });
    const politely = options.context?.politely ?? this.#defaults.context?.politely;
    return {
      ...options,
      // Ky would count the time in the queue.
      timeout: false,
      retry: withoutRefusals(this.#defaults.retry, options.retry),
      fetch: (input, init) => polite.fetch(input, politely === undefined ? init : { ...init, politely }),
    };
  }

  /** Sends one hop and gives up when its headers are not there in time, as ky itself would have. */
  async #sendWithin(ms: number, send: Send, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const { clock } = this.#exchange.pacer;
    const late = new AbortController();
    const outer = init.signal ?? undefined;
    const signals = outer === undefined ? [late.signal] : [outer, late.signal];
    let timer: unknown;
    const isLate = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimer(clock.now() + ms, () => {
        void this.#timeoutError(input, init).then((error) => {
          late.abort(error);
          reject(error);
        });
      });
    });
    try {
      return await Promise.race([send(input, { ...init, signal: AbortSignal.any(signals) }), isLate]);
    } finally {
      clock.clearTimer(timer);
    }
  }

  /** Ky's own `TimeoutError`, which only ky can make: it is asked to wait 0 ms for an answer that never comes. */
  async #timeoutError(input: string | URL | Request, init: RequestInit): Promise<unknown> {
    const isRequest = typeof input === "object" && "url" in input;
    const url = isRequest ? input.url : String(input);
    const method = init.method ?? (isRequest ? input.method : "GET");
    try {
      return await this.ky.create({})(url, { method, timeout: 0, retry: 0, fetch: () => new Promise(() => undefined) });
    } catch (error) {
      return error;
    }
  }
}

/** What a `PoliteFetch` needs of an exchange, with no retries of its own: those of ky would multiply them. */
function withoutRetry(exchange: Exchange): Exchange {
  const { pacer, identity } = exchange;
  const quiet: Pick<Exchange, "pacer" | "identity" | "admit"> = {
    pacer: { ...pacer, http: () => ({ ...pacer.http(), retry: undefined }) },
    identity,
    admit: (errand) => exchange.admit(errand),
  };
  return quiet as Exchange;
}

/** Ky takes every error for a network that failed; what the limiter refuses is refused for good. */
function withoutRefusals(defaults: KyOptions["retry"], own: KyOptions["retry"]): RetryOptions {
  const merged: RetryOptions = { ...retryOptions(defaults), ...retryOptions(own) };
  return {
    ...merged,
    shouldRetry: (state) => (state.error instanceof PolitelyError ? false : merged.shouldRetry?.(state)),
  };
}

function retryOptions(retry: KyOptions["retry"]): object {
  return typeof retry === "number" ? { limit: retry } : (retry ?? {});
}
