import { showValue } from "../policy/showValue.js";
import type { FetchOptions, PoliteRequestInit } from "../types.js";
import { isOfOwnStream } from "./failure.js";
import type { Send } from "./fetch.js";
import { type Hop, networkError, nextHop, refuseCredentials } from "./redirect.js";
import { nextReferral, type Referral, referralOf } from "./referrer.js";
import { copyBody, copyHeaders } from "./snapshot.js";

/** One request of a journey: the first as the caller wrote it, the others as redirects make them. */
export interface Step {
  readonly url: string;
  /** Undefined for the first step. */
  readonly hop: Hop | undefined;
  readonly referral: Referral | undefined;
}

/** How a step is sent. */
export interface Sending {
  readonly signal: AbortSignal | undefined;
  /** The platform follows redirects by itself. */
  readonly follows: boolean;
  /** Instead of the caller's. */
  readonly dispatcher: unknown;
}

const USER_AGENT = "user-agent";
const NOTHING: RequestInit = {};
const HTTP = /^https?:$/;
/** As URLs with a host are written, by nearly all. */
const PLAIN = /^https?:\/\//i;

/** What `fetch` looks for in an init, wherever the init has it from: a Request has all of it in its class. */
const MEMBERS = [
  "body",
  "cache",
  "credentials",
  "dispatcher",
  "duplex",
  "headers",
  "integrity",
  "keepalive",
  "method",
  "mode",
  "politely",
  "priority",
  "redirect",
  "referrer",
  "referrerPolicy",
  "signal",
  "window",
];

/** What a Request says that holds for its redirects too. The rest of it goes with the hop. */
const CARRIED = ["cache", "credentials", "integrity", "keepalive", "mode"] as const;
/** Modes that a Request may have and no init may ask for. */
const UNASKABLE: readonly unknown[] = ["navigate", "websocket"];

/** A call of `fetch` with all its redirects and repetitions, as it was when it was made: what the caller changes while it waits changes nothing. */
export class Journey {
  readonly url: string;
  /** Whether there is a host to be polite to. A text that is no URL counts as one, to be refused where all targets are. */
  readonly isPaced: boolean;
  readonly method: string;
  readonly redirect: RequestRedirect;
  readonly signal: AbortSignal | undefined;
  readonly options: FetchOptions | undefined;
  readonly #input: string | Request;
  readonly #request: Request | undefined;
  readonly #init: RequestInit;
  /** A copy of a request's body, made before the body goes away with the first sending. */
  readonly #spare: Request | undefined;
  readonly #referral: Referral | undefined;
  #sent = 0;

  /** Throws `TypeError` when `given` is neither an object nor absent, its headers make no sense, or the body of a Request is used. */
  constructor(
    input: string | URL | Request,
    given: PoliteRequestInit | null | undefined,
    /** Sent by requests that have no User-Agent of their own. */
    readonly policyAgent: string | undefined,
  ) {
    const request = isRequest(input) ? input : undefined;
    let init = NOTHING;
    if (given !== undefined && given !== null) {
      const { politely, ...rest } = readInit(given);
      init = rest;
      this.options = politely;
    }
    // An init that says anything takes the referrer of a Request away.
    this.#referral = referralOf(request === undefined || saysAnything(init) ? init : request);
    if (request !== undefined && init.headers === undefined) init = { ...init, headers: new Headers(request.headers) };
    const written = urlOf(input);
    // The platform takes `http:host` and the like, a target is not written so.
    const parsed = PLAIN.test(written) ? undefined : parse(written);
    this.isPaced = parsed === undefined || HTTP.test(parsed.protocol);
    this.url = parsed === undefined || !this.isPaced ? written : parsed.href;
    this.#input = request ?? this.url;
    this.#request = request;
    this.#init = init;
    this.method = normalMethod(init.method ?? request?.method ?? "GET");
    this.redirect = init.redirect === undefined ? (request?.redirect ?? "follow") : init.redirect;
    this.signal = (init.signal === undefined ? request?.signal : init.signal) ?? undefined;
    const hasSpareBody = request !== undefined && isAbsent(init.body) && !isAbsent(request.body);
    if (hasSpareBody && (request.bodyUsed || request.body?.locked === true)) {
      throw new TypeError("The body of the Request is used already. Send a clone of it, or make a new Request.");
    }
    this.#spare = hasSpareBody && this.redirect === "follow" ? request.clone() : undefined;
  }

  /** Whether it can be sent a second time: a stream as body cannot. */
  get isRepeatable(): boolean {
    const { body } = this.#init;
    if (!isAbsent(body)) return !isStream(body);
    return isAbsent(this.#request?.body) || this.#spare !== undefined;
  }

  /** Whether a failure is that of the body to send, if that is a stream. What the body of a Request was made of cannot be seen. */
  isOwnFailure(error: unknown): boolean {
    return isStream(this.#init.body ?? this.#request?.body) && isOfOwnStream(error);
  }

  /** Whether the body has to be a certain one. The platform takes that for the body of every hop it is shown, redirects too. */
  get hasIntegrity(): boolean {
    return (this.#init.integrity ?? this.#request?.integrity ?? "") !== "";
  }

  /** The one the caller has given in the init. */
  get dispatcher(): unknown {
    return (this.#init as { readonly dispatcher?: unknown }).dispatcher;
  }

  /** Whether nobody but the platform may know which dispatcher it goes through: a Request can have one that is not shown. */
  get hidesDispatcher(): boolean {
    return this.#request !== undefined;
  }

  /** The User-Agent the caller has set; null when there is none. */
  ownAgent = (): string | null => this.#ownHeaders().get(USER_AGENT);

  firstStep(): Step {
    return { url: this.url, hop: undefined, referral: this.#referral };
  }

  /** The step that a redirect leads to. Throws `TypeError` as `nextHop` does, and when it names a user, leaves an origin it must not, or the body cannot be sent again. */
  follow(step: Step, { status, headers }: Response, location: string): Step {
    const { referral } = step;
    const hop = nextHop(step.hop ?? this.#firstHop(), status, location);
    refuseCredentials(hop, step.url);
    if (hop.hasCrossed === true && (this.#init.mode ?? this.#request?.mode) === "same-origin") {
      throw networkError(`${step.url} redirects to another origin, and the mode of the request is same-origin`);
    }
    if (hop.hasBody && !this.isRepeatable) {
      throw networkError(`${step.url} redirects a request whose body is a stream, which cannot be sent twice`);
    }
    return {
      url: hop.url,
      hop,
      referral: referral && nextReferral(referral, step.url, headers.get("referrer-policy")),
    };
  }

  /** Sends it as the caller wrote it. */
  pass(send: Send): Promise<Response> {
    return send(this.#input, this.#init);
  }

  /** Sends one step. */
  send(send: Send, { hop, referral }: Step, { signal, follows, dispatcher }: Sending): Promise<Response> {
    const redirect = this.redirect === "follow" && !follows ? "manual" : this.redirect;
    const base: RequestInit & { dispatcher?: unknown } =
      this.#init === NOTHING ? { redirect } : { ...this.#init, redirect };
    if (dispatcher !== undefined) base.dispatcher = dispatcher;
    if (signal !== undefined) base.signal = signal;
    if (referral !== undefined) Object.assign(base, referral);
    if (hop !== undefined) return this.#sendHop(send, hop, base);
    const headers = this.#changedHeaders();
    if (headers !== undefined) base.headers = headers;
    this.#sent += 1;
    if (this.#sent === 1 || this.#spare === undefined) return send(this.#input, base);
    // A copy of a Request does not have its dispatcher everywhere.
    if (this.#request !== undefined) carryDispatcher(this.#request, base);
    return send(this.#spare.clone(), base);
  }

  async #sendHop(send: Send, { url, method, headers, hasBody }: Hop, base: RequestInit): Promise<Response> {
    if (this.#request !== undefined) carry(this.#request, base);
    return send(url, { ...base, method, headers, body: hasBody ? await this.#bodyAgain() : null });
  }

  /** The first step as far as a redirect changes it. */
  #firstHop(): Hop {
    const body = this.#init.body ?? this.#request?.body;
    return {
      url: this.url,
      method: this.method,
      headers: this.#headers(),
      hasBody: !isAbsent(body),
      hasCrossed: false,
    };
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
    return this.#spare === undefined ? (this.#init.body ?? null) : this.#spare.clone().arrayBuffer();
  }
}

/** A copy of an init with all that `fetch` would find in it. */
function readInit(given: PoliteRequestInit): PoliteRequestInit {
  if (typeof given !== "object") {
    throw new TypeError(`init must be an object; got ${showValue(given)}. Leave it out or write { method: "POST" }.`);
  }
  let init = given;
  if (!isPlain(given)) {
    const read: Record<string, unknown> = { ...given };
    for (const name of MEMBERS) {
      const value: unknown = Reflect.get(given, name);
      if (value !== undefined) read[name] = value;
    }
    init = read;
  }
  const { headers, body } = init;
  if (isAbsent(headers) && isAbsent(body)) return init;
  return {
    ...init,
    ...(isAbsent(headers) ? {} : { headers: copyHeaders(headers) }),
    ...(isAbsent(body) ? {} : { body: copyBody(body) }),
  };
}

/** Whether an init has anything in it that counts. */
function saysAnything(init: RequestInit): boolean {
  return Object.values(init).some((value) => value !== undefined);
}

/** Whether everything an object has is its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Adds to the init of a hop what a Request says and the init does not. */
function carry(request: Request, init: RequestInit): void {
  const fields = init as Record<string, unknown>;
  for (const name of CARRIED) {
    const value: unknown = request[name];
    if (fields[name] === undefined && value !== undefined && !UNASKABLE.includes(value)) fields[name] = value;
  }
  carryDispatcher(request, init);
}

/** Adds the dispatcher of a Request. Undici up to version 6, which Node 20 and 22 have, keeps it under a symbol; later ones hide it. */
function carryDispatcher(request: Request, init: RequestInit): void {
  const fields = init as { dispatcher?: unknown };
  if (fields.dispatcher !== undefined) return;
  const name = Object.getOwnPropertySymbols(request).find(({ description }) => description === "dispatcher");
  const dispatcher: unknown = name === undefined ? undefined : Reflect.get(request, name);
  if (dispatcher !== undefined && dispatcher !== null) fields.dispatcher = dispatcher;
}

/** Whether there is nothing, in either of its forms. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && ("getReader" in body || Symbol.asyncIterator in body);
}

function urlOf(input: string | URL | Request): string {
  if (typeof input === "string") return input;
  return isRequest(input) ? input.url : String(input);
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

/** Also true for the Request class of another copy of undici, which `instanceof` does not know. */
function isRequest(input: unknown): input is Request {
  if (typeof input !== "object" || input === null) return false;
  return "url" in input && typeof input.url === "string" && "headers" in input && "method" in input;
}

/** As the standard has it: these six in upper case however they are written, all others as they are. */
function normalMethod(method: string): string {
  if (method === "GET") return method;
  const written = String(method);
  const upper = written.toUpperCase();
  return ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"].includes(upper) ? upper : written;
}
