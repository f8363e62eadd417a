import { checkNames } from "../core/checkNames.js";
import { showValue } from "../policy/showValue.js";
import type { FetchOptions, PoliteRequestInit } from "../types.js";
import type { Exchange } from "./exchange.js";
import { Flight } from "./flight.js";
import { HeldResponses, letGo } from "./heldResponse.js";
import { isAbsent, Journey, type Step } from "./journey.js";
import { isRedirect, MAX_REDIRECTS, networkError, shownLocation } from "./redirect.js";
import { type ResponseFacts, sayOf } from "./responseCopy.js";
import { withMaxWait } from "./retrier.js";
import type { Tap } from "./tap/tap.js";
import { type TapDispatcher, tapFor } from "./tap/tapDispatcher.js";
import { tapped } from "./tap/tappedResponse.js";
import { startTimeout, timeoutMsOf } from "./timeout.js";

/** Sends one request; the global `fetch` fits. */
export type Send = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What a `PoliteFetch` is made of. */
export interface FetchParts {
  readonly exchange: Exchange;
  readonly send: Send;
  /** `send` calls the global `fetch`: where that is Node's own, what arrives is seen before it. Default false. */
  readonly isGlobal?: boolean;
  /** The policy's `retry` does not apply, since the client has retries of its own. Default false. */
  readonly isOnce?: boolean;
}

const OPTIONS = ["intent", "scopes", "timeout", "maxWait", "priority", "cost"];
const NO_FACTS: ResponseFacts = {};
const REDIRECTED: ResponseFacts = { redirected: true };
/** As the standard has it for an answer from behind another origin. */
const CROSSED: ResponseFacts = { redirected: true, type: "cors" };

/** The standard `fetch`, paced and listening. What leads to no host, as `data:` and `blob:`, is left to the platform. */
export class PoliteFetch {
  readonly #held: HeldResponses;
  /** The platform follows redirects by itself and does not show where to, as browsers do. */
  #hidesRedirects = false;

  constructor(readonly parts: FetchParts) {
    this.#held = new HeldResponses(parts.exchange.pacer.clock);
  }

  /** Never throws; bound, so that it may be passed around. */
  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> => {
    try {
      return this.#fetch(input, init);
    } catch (error) {
      return Promise.reject(error);
    }
  };

  #fetch(input: string | URL | Request, init: PoliteRequestInit | undefined): Promise<Response> {
    const journey = new Journey(input, init, this.parts.exchange.identity.userAgent);
    if (!journey.isPaced) return journey.pass(this.parts.send);
    if (journey.options !== undefined) checkNames(journey.options, OPTIONS, "init.politely");
    const timeoutMs = timeoutMsOf(journey.options?.timeout);
    const { exchange, isOnce = false } = this.parts;
    const rules = journey.isRepeatable && !isOnce ? exchange.retrier.rulesFor(journey.method) : undefined;
    if (rules === undefined) return this.#travel(journey, journey.options, timeoutMs);
    const { url, method, signal, options } = journey;
    return exchange.retrier.run<Response>(
      {
        url,
        method,
        signal,
        options,
        attempt: (maxWaitMs) => this.#travel(journey, withMaxWait(options, maxWaitMs), timeoutMs),
        status: (response) => response.status,
        headers: (response) => response.headers,
        letGo,
        discard,
      },
      rules,
    );
  }

  /** Sends a request and follows its redirects, each hop paced under its own host. */
  async #travel(journey: Journey, options: FetchOptions | undefined, timeoutMs: number | undefined): Promise<Response> {
    const { exchange } = this.parts;
    const { signal, ownAgent, dispatcher } = journey;
    let step = journey.firstStep();
    for (let redirects = 0; ; redirects++) {
      const stepOptions = step.hop === undefined ? options : this.#optionsOfHop(journey, step, options);
      const entered = exchange.enter({ url: step.url, signal, ownAgent, options: stepOptions, dispatcher });
      // Most need not wait: then there is no promise to wait for either.
      const flight = entered instanceof Flight ? entered : await entered;
      flight.signal = signal;
      const timeout = timeoutMs === undefined ? undefined : startTimeout(exchange.pacer.clock, timeoutMs, signal);
      if (timeout !== undefined) flight.onEnd = () => timeout.stop();
      const follows = journey.redirect === "follow" && (this.#hidesRedirects || journey.hasIntegrity);
      const sentSignal = timeout?.signal ?? signal;
      const tapping = this.#tapFor(journey, sentSignal);
      let isAnswered = false;
      try {
        const response = await exchange.sendOwn(step.url, flight, () =>
          journey.send(this.parts.send, step, { signal: sentSignal, follows, dispatcher: tapping }),
        );
        isAnswered = true;
        checkResponse(response);
        const { status, headers } = response;
        if (status === 0 && journey.redirect === "follow" && response.type === "opaqueredirect") {
          this.#hidesRedirects = true;
          flight.done();
          continue;
        }
        const location = journey.redirect === "follow" && isRedirect(status) ? (headers.get("location") ?? null) : null;
        if (location === null) return this.#land(response, flight, factsOf(step, response), tapping?.tap);
        flight.finished(status, headers);
        discard(response);
        if (redirects >= MAX_REDIRECTS) {
          throw networkError(
            `${journey.url} redirects more than ${MAX_REDIRECTS} times, last to ${shownLocation(location)}`,
          );
        }
        step = journey.follow(step, response, location);
      } catch (error) {
        if (journey.isOwnFailure(error)) flight.done();
        // What the platform refuses on a way of its own, it may have refused after the first hop.
        else flight.failed(error, isAnswered || (follows && error instanceof Error && error.cause !== undefined));
        throw error;
      }
    }
  }

  /** What shows the answer to a step as it arrives, where it can be seen. */
  #tapFor(journey: Journey, signal: AbortSignal | undefined): TapDispatcher | undefined {
    return this.parts.isGlobal === true && !journey.hidesDispatcher ? tapFor(journey.dispatcher, signal) : undefined;
  }

  /** The answer that the caller gets. Its place is kept until the body is there, where that can be seen. */
  #land(response: Response, flight: Flight, facts: ResponseFacts, tap: Tap | undefined): Response {
    const { status, body } = response;
    const headers = tap?.headers ?? response.headers;
    const canHold = isWatchable(response);
    if (!canHold || isAbsent(body) || tap?.isWhole === true) flight.finished(status, headers);
    else flight.answered(status, headers);
    if (!canHold) return response;
    if (tap?.headers === undefined) return this.#held.hold(response, flight, facts);
    tap.watch(flight);
    if (facts !== NO_FACTS) sayOf(response, facts);
    if (!isAbsent(body)) return tapped(response, tap, body);
    tap.pass();
    return response;
  }

  /**
   * How a hop waits. At another key it costs one unit: a cost is written for the limits of the first host, and what another
   * has no name or no room for would end the journey. Intent and scopes stay: an intent that a host does not know changes
   * nothing, and a proxy is the same one for every hop.
   */
  #optionsOfHop(journey: Journey, step: Step, options: FetchOptions | undefined): FetchOptions | undefined {
    if (options?.cost === undefined) return options;
    const { pacer } = this.parts.exchange;
    return pacer.keyOf(step.url) === pacer.keyOf(journey.url) ? options : { ...options, cost: undefined };
  }
}

/** What an answer does not say of itself, since it knows its last hop only. */
function factsOf({ hop }: Step, { type }: Response): ResponseFacts {
  if (hop === undefined) return NO_FACTS;
  return hop.hasCrossed === true && type === "basic" ? CROSSED : REDIRECTED;
}

/** Throws `TypeError`, saying what is wrong, for what is not even like a `Response`. */
function checkResponse(answer: unknown): asserts answer is Response {
  if (typeof answer !== "object" || answer === null) throw notResponse(`got ${showValue(answer)}`);
  const { status, headers } = answer as { readonly status?: unknown; readonly headers?: unknown };
  if (typeof status !== "number") throw notResponse(`its status is ${showValue(status)}`);
  if (typeof (headers as Partial<Headers> | null | undefined)?.get !== "function") {
    throw notResponse("its headers have no get");
  }
}

function notResponse(problem: string): TypeError {
  return new TypeError(`The fetch that sends requests must resolve with a Response; ${problem}. Check options.fetch.`);
}

/** Whether it can be seen when the body has arrived: not in a frozen response, nor in one that answers for itself, as mocks do. */
function isWatchable(response: Response): boolean {
  return Object.isExtensible(response) && !Object.hasOwn(response, "body") && !Object.hasOwn(response, "text");
}

/** Nobody wants the body; a stream that is read already is let be. */
function discard(response: Response): void {
  const { body } = response;
  if (isAbsent(body) || body.locked || response.bodyUsed || typeof body.cancel !== "function") return;
  body.cancel().catch(() => undefined);
}
