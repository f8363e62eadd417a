import type { Duration, FetchOptions, PoliteRequestInit } from "../types.js";
import type { Exchange } from "./exchange.js";
import { Flight } from "./flight.js";
import { HeldResponses, letGo } from "./heldResponse.js";
import { Journey } from "./journey.js";
import { isRedirect, MAX_REDIRECTS, networkError, nextHop } from "./redirect.js";
import { withMaxWait } from "./retrier.js";
import { startTimeout } from "./timeout.js";

/** Sends one request; the global `fetch` fits. */
export type Send = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What a `PoliteFetch` is made of. */
export interface FetchParts {
  readonly exchange: Exchange;
  readonly send: Send;
  /** Reads the `timeout` of a request in milliseconds; throws when it makes no sense. */
  readonly readTimeout: (value: Duration) => number;
  /** The policy's `retry` does not apply, since the client has retries of its own. Default false. */
  readonly isOnce?: boolean;
}

const NOTHING: PoliteRequestInit = {};

/** The standard `fetch`, paced and listening. */
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
    const journey = new Journey(input, init ?? NOTHING, this.parts.exchange.identity.userAgent);
    const { timeout } = journey.options ?? {};
    const timeoutMs = timeout === undefined ? undefined : this.parts.readTimeout(timeout);
    const { exchange, isOnce = false } = this.parts;
    const rules = journey.isRepeatable && !isOnce ? exchange.retrier.rulesFor(journey.method) : undefined;
    if (rules === undefined) return this.#travel(journey, journey.options, timeoutMs);
    const { url, method, signal, options } = journey;
    return exchange.retrier.run<Response>(
      {
        url,
        method,
        signal,
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
    let step = journey.firstStep();
    for (let redirects = 0; ; redirects++) {
      const { exchange } = this.parts;
      const { signal, ownAgent } = journey;
      const entered = exchange.enter({ url: step.url, signal, ownAgent, options });
      // Most need not wait: then there is no promise to wait for either.
      const flight = entered instanceof Flight ? entered : await entered;
      const timeout = timeoutMs === undefined ? undefined : startTimeout(exchange.pacer.clock, timeoutMs, signal);
      let response: Response;
      try {
        const follows = journey.redirect === "follow" && this.#hidesRedirects;
        const sendStep = () => journey.send(this.parts.send, step, timeout?.signal ?? signal, follows);
        response = exchange.isIntercepted ? await exchange.sendOwn(step.url, sendStep) : await sendStep();
      } catch (error) {
        timeout?.stop();
        flight.failed(error);
        throw error;
      }
      if (timeout !== undefined) flight.onEnd = () => timeout.stop();
      if (journey.redirect === "follow" && response.type === "opaqueredirect") {
        this.#hidesRedirects = true;
        flight.done();
        continue;
      }
      const { status, headers } = response;
      const location = journey.redirect === "follow" && isRedirect(status) ? headers.get("location") : null;
      if (location === null) {
        if (response.body === null) flight.finished(status, headers);
        else flight.answered(status, headers);
        return this.#held.hold(response, flight, redirects > 0 ? { redirected: true } : {});
      }
      flight.finished(status, headers);
      discard(response);
      if (redirects >= MAX_REDIRECTS) {
        throw networkError(`${journey.url} redirects more than ${MAX_REDIRECTS} times, last to ${location}`);
      }
      const hop = nextHop(journey.describe(step), status, location);
      step = { url: hop.url, hop };
    }
  }
}

/** Nobody wants the body; a stream that is read already is let be. */
function discard(response: Response): void {
  if (response.body === null || response.body.locked || response.bodyUsed) return;
  response.body.cancel().catch(() => undefined);
}
