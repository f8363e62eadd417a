import { PolitelyError } from "../../errors.js";
import type { AnyLimiter } from "../../sharedTypes.js";
import type { FetchOptions } from "../../types.js";
import { type Exchange, exchangeOf } from "../exchange.js";
import { PoliteFetch, type Send } from "../fetch.js";
import type { TimeLimit } from "../timeout.js";

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
  readonly dispatcher?: unknown;
  readonly context?: { readonly politely?: FetchOptions } | undefined;
}

interface RetryOptions {
  readonly shouldRetry?: (state: { readonly error: unknown }) => unknown;
}

type Call = (input: unknown, options?: KyOptions) => unknown;

/** What ky waits where nobody says otherwise, and the most it takes. */
const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const METHODS: ReadonlySet<string | symbol> = new Set(["get", "post", "put", "patch", "head", "delete"]);

/** The instance behind a polite one, and the exchanges its calls go through. */
const politeOnes = new WeakMap<object, { readonly plain: KyLike; readonly exchanges: readonly Exchange[] }>();

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
export function politeKy<Instance extends KyLike>(ky: Instance, limiter: AnyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeKy");
  const { plain, exchanges } = politeOnes.get(ky) ?? { plain: ky, exchanges: [] };
  if (exchanges.includes(exchange)) return ky;
  const calls = new PoliteCalls(exchange, plain);
  const polite = new Proxy<Instance>(ky, {
    apply: (target, _self, [input, options]: Parameters<Call>) =>
      (target as unknown as Call)(input, calls.prepare(options)),
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (METHODS.has(name)) {
        return (input: unknown, options?: KyOptions): unknown => (value as Call)(input, calls.prepare(options));
      }
      if (name !== "create" && name !== "extend") return value;
      return (options: object): unknown => politeKy((value as KyLike["create"])(options), limiter);
    },
  });
  politeOnes.set(polite, { plain, exchanges: [...exchanges, exchange] });
  return polite;
}

/** Sends the requests of one instance. */
class PoliteCalls {
  readonly #polite: PoliteFetch;
  readonly #defaults: KyOptions;

  constructor(
    exchange: Exchange,
    readonly ky: KyLike,
  ) {
    this.#polite = new PoliteFetch(exchange);
    let defaults: KyOptions = {};
    ky.extend((inherited: KyOptions) => {
      defaults = inherited;
      return {};
    });
    this.#defaults = defaults;
  }

  /** The options of a call, with what makes it polite. What ky would refuse is left for ky to refuse. */
  prepare(options: KyOptions = {}): KyOptions {
    if (typeof options !== "object" || options === null || Array.isArray(options)) return options;
    const ms = options.timeout ?? this.#defaults.timeout ?? DEFAULT_TIMEOUT_MS;
    if (ms !== false && !(ms <= MAX_TIMEOUT_MS)) return options;
    const send = options.fetch ?? this.#defaults.fetch;
    const politely = options.context?.politely ?? this.#defaults.context?.politely;
    // A Request hides the dispatcher that ky makes it with.
    const dispatcher = options.dispatcher ?? this.#defaults.dispatcher;
    const ours = { ...(politely && { politely }), ...(dispatcher !== undefined && { dispatcher }) };
    return {
      ...options,
      // Ky would count the time in the queue.
      timeout: false,
      retry: withoutRefusals(this.#defaults.retry, options.retry),
      fetch: (input, init) => {
        const limit = ms === false ? undefined : this.#limit(ms, input, init);
        // Ky's own retries and those of the policy would multiply.
        return this.#polite.call(input, { ...init, ...ours }, { send, limit, isOnce: true });
      },
    };
  }

  /** Ky's own `TimeoutError`, which only ky can make: it is asked to wait 0 ms for an answer that never comes. */
  #limit(ms: number, input: string | URL | Request, init: RequestInit | undefined): TimeLimit {
    const isRequest = typeof input === "object" && "url" in input;
    const url = isRequest ? input.url : String(input);
    const method = init?.method ?? (isRequest ? input.method : "GET");
    const never = { method, timeout: 0, retry: 0, fetch: () => new Promise(() => undefined) };
    const error = async (): Promise<unknown> => {
      try {
        return await this.ky.create({})(url, never);
      } catch (late) {
        return late;
      }
    };
    return { ms, isUntilHeaders: true, error };
  }
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
