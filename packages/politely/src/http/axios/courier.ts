import type { FetchOptions, HeadersLike } from "../../types.js";
import type { Exchange } from "../exchange.js";
import { isOfOwnStream, isUndecodable } from "../failure.js";
import type { Flight } from "../flight.js";
import { isRedirect } from "../redirect.js";
import { withMaxWait } from "../retrier.js";
import {
  type AxiosConfig,
  type AxiosFailure,
  type AxiosLike,
  type AxiosResponse,
  axiosFailure,
  isAxiosFailure,
} from "./client.js";
import { dropStream, holdStream } from "./heldStream.js";
import { fetchLead, isStream, type Lead, nextConfig, nodeLead } from "./redirected.js";
import { redirectFailure, tooManyRedirects } from "./redirectFailure.js";
import { type Listening, listeningTransport, nativeTransport } from "./transport.js";

/** One call with all its redirects and repetitions. */
interface Trip {
  /** As the caller gave it. Answers and errors carry this one. */
  readonly config: AxiosConfig;
  /** The adapter that sends: a function, a name, or a list of them. */
  readonly adapter: unknown;
  readonly url: string;
  readonly signal: AbortSignal | undefined;
  /** How many redirects are followed here; 0 when none, or when axios or its platform does it. */
  readonly maxRedirects: number;
}

/** What came back, also where the caller does not want the status. */
interface Answer {
  readonly response: AxiosResponse;
  readonly flight: Flight;
  /** What axios makes of the status: of one that is refused, and of every redirect that we follow. */
  readonly error: AxiosFailure | undefined;
  /** Where to go on; undefined when this is the last answer. */
  readonly lead: Lead | undefined;
}

/** How many redirects axios follows where nobody says otherwise. */
const MAX_REDIRECTS = 21;
const USER_AGENT = "User-Agent";

/** Sends the requests of one axios instance. */
export class AxiosCourier {
  readonly #exchange: Exchange;
  readonly #sender: AxiosLike;
  readonly #native = nativeTransport();

  constructor(exchange: Exchange, instance: AxiosLike) {
    this.#exchange = exchange;
    // Without interceptors and without defaults: it sends what it is given, by the adapter it is given.
    this.#sender = instance.create({});
    const { defaults } = this.#sender;
    for (const name of Object.keys(defaults)) Reflect.deleteProperty(defaults, name);
  }

  /** An adapter that sends by way of the limiter, and another adapter. */
  adapter(inner: unknown): (config: AxiosConfig) => Promise<AxiosResponse> {
    return (config) => this.#send(config, inner);
  }

  async #send(config: AxiosConfig, adapter: unknown): Promise<AxiosResponse> {
    const url = this.#urlOf(config);
    if (url === undefined) return this.#pass({ ...config, adapter }, config);
    const { signal, cancelToken } = config;
    const token = cancelToken?.toAbortSignal();
    const both = token === undefined || signal === undefined ? (signal ?? token) : AbortSignal.any([signal, token]);
    // Elsewhere the platform follows redirects and does not show where to.
    const maxRedirects = this.#native === undefined ? 0 : (config.maxRedirects ?? MAX_REDIRECTS);
    try {
      const { response, error } = await this.#repeat({ config, adapter, url, signal: both, maxRedirects });
      if (error !== undefined) throw error;
      return response;
    } finally {
      token?.unsubscribe?.();
    }
  }

  /** The absolute URL; undefined when it is none of http or https, or for axios to refuse. */
  #urlOf(config: AxiosConfig): string | undefined {
    const { location } = globalThis as { location?: { readonly href: string } };
    try {
      const { href, protocol } = new URL(this.#sender.getUri(config), location?.href);
      return protocol === "http:" || protocol === "https:" ? href : undefined;
    } catch {
      return undefined;
    }
  }

  #repeat(trip: Trip): Promise<Answer> {
    const { url, signal, config } = trip;
    const { method: name = "get", politely: options, data } = config;
    const method = name.toUpperCase();
    const rules = isStream(data) ? undefined : this.#exchange.retrier.rulesFor(method);
    if (rules === undefined) return this.#travel(trip, options);
    return this.#exchange.retrier.run<Answer>(
      {
        url,
        method,
        signal,
        options,
        attempt: (maxWaitMs) => this.#travel(trip, withMaxWait(options, maxWaitMs)),
        status: ({ response }) => response.status,
        headers: ({ response }) => response.headers,
        letGo: ({ flight }) => flight.letGo(),
        discard,
      },
      rules,
    );
  }

  /** Sends a request and follows its redirects, each hop paced under its own host. */
  async #travel(trip: Trip, options: FetchOptions | undefined): Promise<Answer> {
    const { config, signal, maxRedirects } = trip;
    const ownAgent = (): string | undefined => text(config.headers.get(USER_AGENT));
    let { url } = trip;
    let step = this.#introduce(config);
    for (let redirects = 0; ; redirects++) {
      const flight = await this.#exchange.admit({ url, signal, ownAgent, options });
      const answer = await this.#ask(trip, step, url, flight);
      const { response, error, lead } = answer;
      if (lead === undefined || error === undefined) return this.#hold(answer, config);
      discard(answer);
      if (redirects >= maxRedirects) throw axiosFailure(error, tooManyRedirects());
      try {
        step = nextConfig(step, url, response, lead);
      } catch (thrown) {
        throw axiosFailure(error, redirectFailure(thrown));
      }
      url = step.url ?? url;
    }
  }

  #introduce(config: AxiosConfig): AxiosConfig {
    const { userAgent } = this.#exchange.identity;
    if (userAgent === undefined || config.headers.has(USER_AGENT)) return config;
    const headers = config.headers.concat();
    headers.set(USER_AGENT, userAgent);
    return { ...config, headers };
  }

  /** Sends one hop. Throws what axios throws when there is no answer, or only a part of one. */
  async #ask({ config, adapter, maxRedirects }: Trip, step: AxiosConfig, url: string, flight: Flight): Promise<Answer> {
    let isAnswered = false;
    const answered = (status: number, headers: HeadersLike): void => {
      if (!isAnswered) flight.answered(status, headers);
      isAnswered = true;
    };
    const isWanted = (status: number): boolean => config.validateStatus?.(status) ?? true;
    // The transport shows the headers before axios asks about the status; another way only the status is known by then.
    let heard: { readonly lead: Lead | undefined } | undefined;
    const mayLead = (status: number): boolean => (heard === undefined ? isRedirect(status) : heard.lead !== undefined);
    const isFinal = (status: number): boolean => !(maxRedirects > 0 && mayLead(status)) && isWanted(status);
    const leadOf = ({ status, headers }: AxiosResponse): Lead | undefined => {
      if (maxRedirects <= 0) return undefined;
      return heard === undefined ? fetchLead(status, fieldOf(headers, "location")) : heard.lead;
    };
    const transport = config.transport ?? this.#native;
    const listening: Listening = {
      url,
      timeoutMs: Number(config.timeout ?? 0),
      clock: this.#exchange.pacer.clock,
      answered: (status, headers) => {
        heard = { lead: nodeLead(status, headers.location) };
        answered(status, headers);
      },
    };
    const hop: AxiosConfig = {
      ...step,
      adapter,
      maxRedirects: maxRedirects > 0 ? 0 : config.maxRedirects,
      validateStatus: isFinal,
      transport: transport && listeningTransport(transport, listening),
    };
    try {
      const response = await this.#exchange.sendOwn(url, flight, () => this.#pass(hop, config));
      answered(response.status, response.headers);
      return { response, flight, error: undefined, lead: undefined };
    } catch (error) {
      const response = isAxiosFailure(error) ? error.response : undefined;
      if (response !== undefined && isAxiosFailure(error) && !isFinal(response.status)) {
        answered(response.status, response.headers);
        return { response, flight, error, lead: leadOf(response) };
      }
      if (isStream(step.data) && isOfOwnStream(error)) flight.done();
      // An answer that was wanted and came with an error broke off in its body, unless that is not compressed as it says.
      else flight.failed(response === undefined || isUndecodable(error) ? error : { code: "ECONNRESET", cause: error });
      throw error;
    }
  }

  /** Frees the place of an answer once its body is there. */
  #hold(answer: Answer, { validateStatus }: AxiosConfig): Answer {
    const { response, flight, error } = answer;
    response.data = holdStream(response.data, flight, this.#exchange.pacer.clock);
    // A redirect without a location is no redirect; the caller may want it.
    const isWanted = error !== undefined && (validateStatus?.(response.status) ?? true);
    return isWanted ? { ...answer, error: undefined } : answer;
  }

  /** Gives a request to its adapter. What comes back carries the caller's config, so that it can be sent again. */
  async #pass(config: AxiosConfig, own: AxiosConfig): Promise<AxiosResponse> {
    try {
      const response = (await this.#sender.request({
        ...config,
        transformRequest: [],
        transformResponse: [],
      })) as AxiosResponse;
      response.config = own;
      return response;
    } catch (error) {
      if (isAxiosFailure(error)) {
        error.config = own;
        if (error.response !== undefined) error.response.config = own;
      }
      throw error;
    }
  }
}

function discard({ response, flight }: Answer): void {
  flight.done();
  dropStream(response.data);
}

function fieldOf(headers: HeadersLike, name: string): string | undefined {
  return text("get" in headers && typeof headers.get === "function" ? headers.get(name) : undefined);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
