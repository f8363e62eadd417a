import { PolitelyError } from "../../errors.js";
import type { AnyLimiter } from "../../sharedTypes.js";
import type { FetchOptions, HeadersLike } from "../../types.js";
import { type Errand, type Exchange, exchangeOf } from "../exchange.js";
import type { Flight } from "../flight.js";
import { type NodeAgent, nodeHttp, type Pace, pacedAgent } from "../node/agents.js";
import { PACED, paceRequest, startRequest } from "../node/paceRequest.js";
import { withMaxWait } from "../retrier.js";

/** The part of an axios instance this adapter calls. `axios` itself and what `axios.create` makes both fit. */
export interface AxiosLike {
  readonly defaults: object & { adapter?: unknown };
  readonly interceptors: {
    readonly request: { use(change: ChangeAdapter, rejected: null, options: { synchronous: true }): unknown };
  };
  create(config: object): AxiosLike;
  request(config: object): Promise<unknown>;
  getUri(config: object): string;
}

/** Changes which adapter a request is sent by. */
type ChangeAdapter = <Config extends { adapter?: unknown }>(config: Config) => Config;

/** A request as axios gives it to its adapter: merged with all defaults, its body ready to be sent. */
interface AxiosConfig {
  readonly method?: string | undefined;
  readonly headers: AxiosHeaders;
  readonly data?: unknown;
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly cancelToken?: { toAbortSignal(): AbortSignal & { unsubscribe?: () => void } } | undefined;
  readonly httpAgent?: NodeAgent | undefined;
  readonly httpsAgent?: NodeAgent | undefined;
  /** What `adapter: "fetch"` sends with instead of the global one. */
  readonly env?: { readonly fetch?: unknown };
  readonly fetchOptions?: object | undefined;
  readonly validateStatus?: ((status: number) => boolean) | null | undefined;
  /** How the limiter should treat it. */
  readonly politely?: FetchOptions | undefined;
}

/** `concat` makes a copy. */
type AxiosHeaders = Pick<Headers, "get" | "has" | "set"> & { concat(): AxiosHeaders };

/** What axios answers. */
interface AxiosResponse {
  readonly data: unknown;
  readonly status: number;
  readonly headers: HeadersLike;
  config: AxiosConfig;
}

/** An `AxiosError`. */
interface AxiosFailure extends Error {
  config?: AxiosConfig;
  readonly response?: AxiosResponse | undefined;
}

/** What came back, also where the caller does not want the status: then axios has made an error of it. */
interface Answer {
  readonly response: AxiosResponse;
  readonly flight: Flight;
  readonly error: AxiosFailure | undefined;
}

const USER_AGENT = "User-Agent";

/** Which exchanges an adapter goes through, and from which ones an instance has its interceptor. */
const exchangesOf = new WeakMap<object, readonly Exchange[]>();

/**
 * Makes the requests of an axios instance wait for `limiter` and tell it what was answered. Changes the instance itself,
 * and returns it.
 *
 * Each redirect waits its turn at its own host. `timeout` starts at the grant of each hop. A place is kept until the body
 * has arrived; that of a `responseType: "stream"` until it ends, is destroyed, or nobody has read it for 5 s.
 * Cancelling leaves the queue. `http.retry` of the policy applies. `politely` in the config of a request says how it waits.
 * Errors are those of axios, and the limiter's own as they are. A request that brings its own adapter function is not paced.
 *
 * Throws `TypeError` when `limiter` is none. The same limiter twice paces once.
 */
export function politeAxios<Instance extends AxiosLike>(instance: Instance, limiter: AnyLimiter): Instance {
  const exchange = exchangeOf(limiter, "politeAxios");
  const courier = new AxiosCourier(exchange, instance, limiter);
  const wrap = (adapter: unknown): unknown => {
    const known = exchangesIn(adapter);
    if (known.includes(exchange)) return adapter;
    const polite = (config: AxiosConfig): Promise<AxiosResponse> => courier.send(config, adapter);
    exchangesOf.set(polite, [...known, exchange]);
    return polite;
  };
  instance.defaults.adapter = wrap(instance.defaults.adapter);
  const known = exchangesIn(instance);
  if (known.includes(exchange)) return instance;
  exchangesOf.set(instance, [...known, exchange]);
  // An adapter named in a request takes the place of ours; a function is the caller's own way.
  const wrapNamed: ChangeAdapter = (config) => {
    const isOurs = exchangesIn(config.adapter).length > 0;
    if (isOurs || typeof config.adapter !== "function") config.adapter = wrap(config.adapter);
    return config;
  };
  instance.interceptors.request.use(wrapNamed, null, { synchronous: true });
  return instance;
}

function exchangesIn(thing: unknown): readonly Exchange[] {
  return typeof thing === "function" ? (exchangesOf.get(thing) ?? []) : [];
}

/** Sends the requests of one axios instance. */
class AxiosCourier {
  readonly #sender: AxiosLike;
  readonly #fetch: AnyLimiter["fetch"];
  #isFetchKnown = false;

  constructor(
    readonly exchange: Exchange,
    instance: AxiosLike,
    limiter: AnyLimiter,
  ) {
    // Without interceptors and without defaults: it sends what it is given, by the adapter it is given.
    this.#sender = instance.create({});
    const { defaults } = this.#sender;
    for (const name of Object.keys(defaults)) Reflect.deleteProperty(defaults, name);
    // One function for all requests, since axios makes an adapter of each.
    this.#fetch = (input, init) => {
      this.#isFetchKnown = true;
      return limiter.fetch(input, init);
    };
  }

  /** Sends by way of the limiter, and another adapter. */
  async send(config: AxiosConfig, adapter: unknown): Promise<AxiosResponse> {
    const url = this.#urlOf(config);
    if (url === undefined) return this.#pass(config, { adapter });
    if (isFetch(adapter) && config.env?.fetch === undefined) return this.#sendByFetch(config, adapter);
    const { retrier } = this.exchange;
    const { method: name = "get", headers, politely: options, cancelToken } = config;
    const method = name.toUpperCase();
    const token = cancelToken?.toAbortSignal();
    const signals = [config.signal, token].filter((each) => each !== undefined);
    const signal = signals.length === 2 ? AbortSignal.any(signals) : signals[0];
    const errand = { url, signal, options, ownAgent: () => headers.get(USER_AGENT) };
    const attempt = (maxWaitMs?: number): Promise<Answer> =>
      this.#attempt(config, adapter, { ...errand, options: withMaxWait(options, maxWaitMs) });
    const rules = isStream(config.data) ? undefined : retrier.rulesFor(method);
    const repeatable = {
      ...errand,
      method,
      attempt,
      status: ({ response }: Answer) => response.status,
      headers: ({ response }: Answer) => response.headers,
      letGo: ({ flight }: Answer) => flight.letGo(),
      discard,
    };
    try {
      const { response, error } = await (rules === undefined ? attempt() : retrier.run<Answer>(repeatable, rules));
      if (error !== undefined) throw error;
      return response;
    } finally {
      token?.unsubscribe?.();
    }
  }

  /** The absolute URL; undefined when it is none of http or https, or for axios to refuse. */
  #urlOf(config: AxiosConfig): string | undefined {
    try {
      const { href, protocol } = new URL(this.#sender.getUri(config), globalThis.location?.href);
      return protocol === "http:" || protocol === "https:" ? href : undefined;
    } catch {
      return undefined;
    }
  }

  /** Lets axios' `fetch` adapter send by the limiter's own `fetch`, which follows redirects, repeats and starts the timeout. */
  async #sendByFetch(config: AxiosConfig, adapter: unknown): Promise<AxiosResponse> {
    const { timeout = 0, env, fetchOptions, politely } = config;
    const options = { ...politely, ...(timeout > 0 && { timeout }) };
    const ways = { env: { ...env, fetch: this.#fetch }, fetchOptions: { ...fetchOptions, politely: options } };
    try {
      const response = await this.#pass(config, { ...ways, adapter, timeout: 0 });
      if (!this.#isFetchKnown) throw new TypeError('politeAxios cannot pace adapter: "fetch" of axios before 1.12.');
      return response;
    } catch (error) {
      if (!isAxiosFailure(error) || error.name !== "TimeoutError") throw error;
      const message = `timeout of ${timeout}ms exceeded`;
      throw Object.assign(error, { name: "AxiosError", code: "ETIMEDOUT", message });
    }
  }

  /**
   * Waits for the first hop, and sends. Where agents of Node make the connections they show each hop: redirects wait for
   * their own hosts, and each place is kept until the last byte. Elsewhere a place is kept until axios has its answer.
   */
  async #attempt(config: AxiosConfig, adapter: unknown, errand: Errand): Promise<Answer> {
    const { exchange } = this;
    let flight = await exchange.enter(errand);
    let turn: Flight | undefined = flight;
    const agents = agentsFor(config, (request, connection, proceed) => {
      connection[PACED] = true;
      if (turn !== undefined) {
        turn = undefined;
        startRequest(exchange, request, flight, proceed);
        return;
      }
      const goOn = (next = flight): void => {
        flight = next;
        proceed();
      };
      paceRequest(exchange, request, connection, goOn, errand.options);
    });
    try {
      const response = await exchange.sendOwn(errand.url, flight, () => this.#pass(config, { ...agents, adapter }));
      turn?.finished(response.status, response.headers);
      return { response, flight, error: undefined };
    } catch (error) {
      const response = isAxiosFailure(error) ? error.response : undefined;
      if (response === undefined) turn?.failed(error);
      else turn?.finished(response.status, response.headers);
      const isWanted = response !== undefined && (config.validateStatus?.(response.status) ?? true);
      // A wanted answer that came with an error broke off in its body.
      if (response === undefined || isWanted) throw error;
      return { response, flight, error: error as AxiosFailure };
    }
  }

  /** Gives a request to its adapter. What comes back carries the caller's config, so that it can be sent again. */
  async #pass(config: AxiosConfig, changes: object): Promise<AxiosResponse> {
    const { userAgent } = this.exchange.identity;
    const headers = config.headers.concat();
    if (userAgent !== undefined && !headers.has(USER_AGENT)) headers.set(USER_AGENT, userAgent);
    try {
      const bare = { ...config, headers, transformRequest: [], transformResponse: [], ...changes };
      const response = (await this.#sender.request(bare)) as AxiosResponse;
      response.config = config;
      return response;
    } catch (error) {
      if (!isAxiosFailure(error)) throw error;
      if (error.cause instanceof PolitelyError) throw error.cause;
      error.config = config;
      if (error.response !== undefined) error.response.config = config;
      throw error;
    }
  }
}

/** The agents of a request, paced; none where there are none. */
function agentsFor({ httpAgent, httpsAgent }: AxiosConfig, pace: Pace): object {
  const http = httpAgent ?? nodeHttp("node:http")?.globalAgent;
  const https = httpsAgent ?? nodeHttp("node:https")?.globalAgent;
  return { httpAgent: http && pacedAgent(http, pace), httpsAgent: https && pacedAgent(https, pace) };
}

/** Whether axios will choose its `fetch` adapter. */
function isFetch(adapter: unknown): boolean {
  const names: unknown[] = [adapter].flat();
  return names.find((name) => name !== "xhr" || "XMLHttpRequest" in globalThis) === "fetch";
}

/** Whether a body can be sent only once. */
function isStream(data: unknown): boolean {
  return typeof data === "object" && data !== null && ("pipe" in data || "getReader" in data);
}

/** Whether axios itself made an error, so that it may carry the answer. */
function isAxiosFailure(error: unknown): error is AxiosFailure {
  return error instanceof Error && "isAxiosError" in error;
}

/** Nobody wants an answer, if it is still to come. */
function discard({ response: { data }, flight }: Answer): void {
  flight.done();
  if (typeof data === "object" && data !== null && "destroy" in data) (data as { destroy(): void }).destroy();
}
