import type { HeadersLike } from "../../types.js";
import type { Errand, Exchange } from "../exchange.js";
import { failureOf } from "../failure.js";
import type { Flight } from "../flight.js";
import type { Abort } from "./dispatchTypes.js";
import { UnreadBody } from "./unreadBody.js";
import { watchBody } from "./watchBody.js";

/** Whoever asked for the request, in its own style of callbacks. */
export interface Caller {
  /** Gives it the means to abort. */
  start(): void;
  fail(error: unknown): void;
}

/** What a ride needs to begin. */
export interface Departure {
  readonly caller: Caller;
  /** Undefined when nobody can tell where the request goes. */
  readonly errand: Errand | undefined;
  /** What the request sends along. */
  readonly body: unknown;
  /** The same request in an interceptor further out. */
  readonly outer: Ride | undefined;
  /** Hands the request to undici. */
  readonly send: () => void;
}

/** `waiting` for its turn, `handed` to undici, `started` on a connection, `over`. */
type Phase = "waiting" | "handed" | "started" | "over";

const FINAL_STATUS_FROM = 200;

/** One dispatch from the queue to its last byte, whichever style of callbacks it has. */
export class Ride {
  #phase: Phase = "waiting";
  #flight: Flight | undefined = undefined;
  #unread: UnreadBody | undefined = undefined;
  /** Ends the wait. */
  readonly #wait = new AbortController();
  /** Stops the request on its connection. */
  #abortSent: Abort | undefined = undefined;
  /** Why it ended before it was on a connection. */
  #givenUp: { readonly reason: unknown } | undefined = undefined;
  #isHandingOver = false;
  #caller: Caller | undefined = undefined;

  constructor(readonly exchange: Exchange) {}

  begin({ caller, errand, body, outer, send }: Departure): void {
    this.#caller = caller;
    try {
      // Early, since a caller can only take back what it was given the means to abort.
      caller.start();
    } catch (error) {
      this.#giveUp(error);
    }
    if (this.#phase === "over") return;
    if (errand === undefined) {
      this.#giveUp(new TypeError(NO_ORIGIN));
      return;
    }
    const handed = outer?.exchange === this.exchange ? outer.#handOver() : undefined;
    // When this dispatcher is the global one, the limiter's own fetch, its questions for robots.txt and the tasks of its `run` come this way.
    const own = handed === undefined ? this.exchange.relay?.take(errand.url) : undefined;
    const taken = own?.isAsked === true ? own.flight : handed;
    if (taken !== undefined) {
      this.#depart(taken, send);
      return;
    }
    const unwatch = watchBody(body, (error) => this.#giveUp(error));
    this.exchange.admit({ ...errand, signal: this.#wait.signal, turn: own?.flight }).then(
      (flight) => {
        unwatch();
        this.#depart(flight, send);
      },
      (error: unknown) => {
        unwatch();
        this.#giveUp(error);
      },
    );
  }

  /** The caller wants no answer any more. */
  abort(reason: unknown = abortError()): void {
    if (this.#phase === "waiting" || this.#phase === "handed") this.#giveUp(reason);
    else this.#abortSent?.(reason);
  }

  /** It is about to be written to a connection. False when it was given up before; then it is stopped here. */
  started(abort: Abort): boolean {
    if (this.#givenUp !== undefined) {
      abort(this.#givenUp.reason);
      return false;
    }
    this.#abortSent = abort;
    this.#phase = "started";
    return true;
  }

  /** Headers are there. Those of a 1xx are not the answer. */
  answered(status: number, headers: HeadersLike): void {
    if (status >= FINAL_STATUS_FROM) this.#flight?.answered(status, headers);
  }

  /** The reader of the body wants no more for now. */
  paused(): void {
    this.#unread?.paused();
  }

  /** The reader of the body goes on. */
  resumed(): void {
    this.#unread?.resumed();
  }

  /** The socket belongs to the caller from now on. */
  upgraded(status: number, headers: HeadersLike): void {
    this.#phase = "over";
    this.#flight?.finished(status, headers);
  }

  /** The last byte is there. */
  completed(): void {
    this.#phase = "over";
    this.#flight?.done();
  }

  /** It failed in undici. False when the caller has been told of an end already. */
  failed(error: unknown): boolean {
    if (this.#givenUp !== undefined) return false;
    // Refused on the spot: the arguments are wrong or the dispatcher is closed, and the site has seen nothing.
    if (this.#isHandingOver && this.#phase === "handed") this.#flight?.unused();
    else this.#flight?.failed(error);
    this.#phase = "over";
    return true;
  }

  #depart(flight: Flight, send: () => void): void {
    if (this.#phase === "over") {
      flight.unused();
      return;
    }
    this.#phase = "handed";
    this.#flight = flight;
    const unread = new UnreadBody(this.exchange.pacer.clock, () => flight.done());
    this.#unread = unread;
    flight.onEnd = () => unread.stop();
    this.#isHandingOver = true;
    try {
      send();
    } catch (error) {
      if (this.failed(error)) this.#caller?.fail(error);
    } finally {
      this.#isHandingOver = false;
    }
  }

  /** Gives its flight to the interceptor further in, once: whoever is nearest to the site hears all of it. */
  #handOver(): Flight | undefined {
    const flight = this.#flight;
    this.#flight = undefined;
    return flight?.isOver === true ? undefined : flight;
  }

  /** Ends it before it was on a connection. */
  #giveUp(reason: unknown): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#givenUp = { reason };
    this.#wait.abort(reason);
    // Nothing was sent, and nothing will be. A caller who has waited too long for a connection has learned something, though.
    if (failureOf(reason) === "timeout") this.#flight?.failed(reason);
    else this.#flight?.unused();
    this.#caller?.fail(reason);
  }
}

const NO_ORIGIN =
  "politeInterceptor cannot tell which site a request is for: it has no origin. Compose an Agent, " +
  "give the request an origin, or write politeInterceptor(limiter, { origin }).";

/** The error undici makes of an abort without a reason. */
function abortError(): Error {
  return Object.assign(new Error("Request aborted"), { name: "AbortError", code: "UND_ERR_ABORTED" });
}
