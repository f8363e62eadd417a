import type { FetchOptions, PoliteRequestInit } from "../types.js";
import type { Send } from "./fetch.js";
import { type Hop, networkError } from "./redirect.js";

/** One request of a journey: the first as the caller wrote it, the others as redirects make them. */
export interface Step {
  readonly url: string;
  /** Undefined for the first step. */
  readonly hop: Hop | undefined;
}

const USER_AGENT = "user-agent";

/** A call of `fetch` with all its redirects and repetitions. */
export class Journey {
  readonly url: string;
  readonly method: string;
  readonly redirect: RequestRedirect;
  readonly signal: AbortSignal | undefined;
  readonly options: FetchOptions | undefined;
  readonly #input: string | URL | Request;
  readonly #request: Request | undefined;
  readonly #init: RequestInit;
  /** A copy of a request's body, made before the body goes away with the first sending. */
  readonly #spare: Request | undefined;
  #sent = 0;

  constructor(
    input: string | URL | Request,
    { politely, ...init }: PoliteRequestInit,
    /** Sent by requests that have no User-Agent of their own. */
    readonly policyAgent: string | undefined,
  ) {
    const request = isRequest(input) ? input : undefined;
    this.#input = input;
    this.#request = request;
    this.#init = init;
    this.url = request?.url ?? (typeof input === "string" ? input : String(input));
    this.method = normalMethod(init.method ?? request?.method ?? "GET");
    this.redirect = init.redirect ?? request?.redirect ?? "follow";
    this.signal = (init.signal === undefined ? request?.signal : init.signal) ?? undefined;
    this.options = politely;
    const hasSpareBody = request !== undefined && init.body === undefined && request.body !== null;
    this.#spare = hasSpareBody && this.redirect === "follow" ? request.clone() : undefined;
  }

  /** Whether it can be sent a second time: a stream as body cannot. */
  get isRepeatable(): boolean {
    return this.#init.body === undefined ? this.#request?.body == null || this.#spare !== undefined : !this.#isStream;
  }

  /** The User-Agent the caller has set; null when there is none. */
  ownAgent = (): string | null => this.#ownHeaders().get(USER_AGENT);

  firstStep(): Step {
    return { url: this.url, hop: undefined };
  }

  /** The step as far as a redirect changes it. */
  describe(step: Step): Hop {
    if (step.hop !== undefined) return step.hop;
    const body = this.#init.body ?? this.#request?.body ?? null;
    return { url: this.url, method: this.method, headers: this.#headers() ?? new Headers(), hasBody: body !== null };
  }

  /** Sends one step. With `follows` the platform follows redirects by itself. */
  send(send: Send, { hop }: Step, signal: AbortSignal | undefined, follows: boolean): Promise<Response> {
    const redirect = this.redirect === "follow" && !follows ? "manual" : this.redirect;
    const base: RequestInit = { ...this.#init, redirect, ...(signal === undefined ? {} : { signal }) };
    if (hop !== undefined) return this.#sendHop(send, hop, base);
    const headers = this.#changedHeaders();
    if (headers !== undefined) base.headers = headers;
    this.#sent += 1;
    return send(this.#sent > 1 && this.#spare !== undefined ? this.#spare.clone() : this.#input, base);
  }

  async #sendHop(send: Send, { url, method, headers, hasBody }: Hop, base: RequestInit): Promise<Response> {
    return send(url, { ...base, method, headers, body: hasBody ? await this.#bodyAgain() : null });
  }

  /** The caller's headers with the policy's User-Agent, if that changes them. */
  #changedHeaders(): Headers | Record<string, string> | undefined {
    if (this.policyAgent === undefined) return undefined;
    if (this.#init.headers === undefined && this.#request === undefined) return { [USER_AGENT]: this.policyAgent };
    return this.#headers();
  }

  #headers(): Headers {
    const headers = this.#ownHeaders();
    if (this.policyAgent !== undefined && !headers.has(USER_AGENT)) headers.set(USER_AGENT, this.policyAgent);
    return headers;
  }

  #ownHeaders(): Headers {
    return new Headers(this.#init.headers ?? this.#request?.headers);
  }

  async #bodyAgain(): Promise<BodyInit | null> {
    if (this.#spare !== undefined) return this.#spare.clone().arrayBuffer();
    const { body = null } = this.#init;
    if (!this.#isStream) return body;
    throw networkError(`${this.url} redirects a request whose body is a stream, which cannot be sent twice`);
  }

  get #isStream(): boolean {
    const body: unknown = this.#init.body;
    return typeof body === "object" && body !== null && ("getReader" in body || Symbol.asyncIterator in body);
  }
}

/** Also true for the Request class of another copy of undici, which `instanceof` does not know. */
function isRequest(input: unknown): input is Request {
  if (typeof input !== "object" || input === null) return false;
  return "url" in input && typeof input.url === "string" && "headers" in input && "method" in input;
}

/** As the standard has it: these five in upper case however they are written, all others as they are. */
function normalMethod(method: string): string {
  const upper = method.toUpperCase();
  return ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"].includes(upper) ? upper : method;
}
