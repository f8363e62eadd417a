import { PolitelyError } from "../../errors.js";
import type { AnyLimiter } from "../../sharedTypes.js";
import type { Clock, FetchOptions } from "../../types.js";
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

/** How one call is sent. It travels in the init of its hops, since all calls of an instance share one `PoliteFetch`. */
const HOW = Symbol("politely/ky");

interface HowToSend {
  readonly send: Send;
  /** From the grant of a hop to its headers. */
  readonly timeoutMs: number | false;
}

interface KyInit extends RequestInit {
  readonly [HOW]?: HowToSend;
}

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
  const courier = new KyCourier(exchange, plain);
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
  politeOnes.set(polite, { plain, exchanges: [...exchanges, exchange] });
  return polite;
}

/** Sends the requests of one instance. */
class KyCourier {
  readonly #clock: Clock;
  readonly #polite: PoliteFetch;
  readonly #defaults: KyOptions;

  constructor(
    exchange: Exchange,
    readonly ky: KyLike,
  ) {
    this.#clock = exchange.pacer.clock;
    this.#polite = new PoliteFetch({
      exchange,
      // Ky's own retries and those of the policy would multiply.
      isOnce: true,
      send: (input, init) => this.#send(input, init),
    });
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
    const timeoutMs = options.timeout ?? this.#defaults.timeout ?? DEFAULT_TIMEOUT_MS;
    if (timeoutMs !== false && !(timeoutMs <= MAX_TIMEOUT_MS)) return options;
    const own = options.fetch ?? this.#defaults.fetch;
    const how: HowToSend = { timeoutMs, send: own ?? ((input, init) => globalThis.fetch(input, init)) };
    const politely = options.context?.politely ?? this.#defaults.context?.politely;
    return {
      ...options,
      // Ky would count the time in the queue.
      timeout: false,
      retry: withoutRefusals(this.#defaults.retry, options.retry),
      fetch: (input, init) => {
        const ours: KyInit = { ...init, [HOW]: how };
        return this.#polite.fetch(input, politely === undefined ? ours : { ...ours, politely });
      },
    };
  }

  #send(input: string | URL | Request, { [HOW]: how, ...init }: KyInit = {}): Promise<Response> {
    if (how === undefined || how.timeoutMs === false) return (how?.send ?? globalThis.fetch)(input, init);
    return this.#sendWithin(how.timeoutMs, how.send, input, init);
  }

  /** Sends one hop and gives up when its headers are not there in time, as ky itself would have. */
  async #sendWithin(ms: number, send: Send, input: string | URL | Request, init: RequestInit): Promise<Response> {
    const late = new AbortController();
    const outer = init.signal ?? undefined;
    const signals = outer === undefined ? [late.signal] : [outer, late.signal];
    let timer: unknown;
    let isOver = false;
    const isLate = new Promise<never>((_resolve, reject) => {
      timer = this.#clock.setTimer(this.#clock.now() + ms, () => {
        void this.#timeoutError(input, init).then((error) => {
          // It may have come just now after all.
          if (isOver) return;
          late.abort(error);
          reject(error);
        });
      });
    });
    try {
      return await Promise.race([send(input, { ...init, signal: AbortSignal.any(signals) }), isLate]);
    } finally {
      isOver = true;
      this.#clock.clearTimer(timer);
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
