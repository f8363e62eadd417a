import type { FetchOptions, HeadersLike } from "../../types.js";
import type { Errand, Exchange } from "../exchange.js";
import { failureOf } from "../failure.js";
import { Flight } from "../flight.js";
import { READ_AHEAD_BYTES, UnreadBody } from "../unreadBody.js";
import { type Abort, type Dispatch, type DispatchOptions, PACED } from "./dispatchTypes.js";
import { requestUrl, userAgentOf, watchBody, withUserAgent } from "./request.js";

/** How a caller wants its dispatches paced. */
export interface Plan {
  readonly exchange: Exchange;
  /**
   * A call of `fetch`: it makes an object for each dispatch, has only its signal to end the wait, and is a start of its own.
   * Else it may be any dispatch, with which the permit of a task may go.
   */
  readonly isFetch: boolean;
  readonly signal?: AbortSignal | undefined;
  /** The site of requests that do not name one. */
  readonly origin?: string | undefined;
  /** What its robots.txt is asked for through. */
  readonly given?: unknown;
  optionsOf(request: DispatchOptions, url: string): FetchOptions | undefined;
  /** Hands it on, towards the site. */
  send(request: DispatchOptions, handler: Parameters<Dispatch>[1]): unknown;
  granted?(flight: Flight): void;
  answered?(): void;
  /** The answer leads elsewhere; whoever asked may follow it. */
  redirected?(key: string): void;
  /** It was not sent: the limiter or robots.txt refused it, or an abort came first. */
  refused?(error: unknown): void;
}

/** `waiting` for its turn, `handed` to undici, `started` on a connection, `over`. */
type Phase = "waiting" | "handed" | "started" | "over";

const FINAL_STATUS_FROM = 200;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** A chunk takes memory beside its bytes. */
const CHUNK_COST = 128;

/**
 * One dispatch from the queue to its last byte. It stands between undici and whoever asked, who is told of everything.
 *
 * Up to 1 MiB of a body comes in although the reader wants no more for now; beyond that the connection waits for the reader.
 */
export abstract class PacedHandler {
  #phase: Phase = "waiting";
  #flight: Flight | undefined = undefined;
  #unread: UnreadBody | undefined = undefined;
  #bytes = 0;
  /** Ends the wait of a dispatch that is not one of `fetch`. */
  #wait: AbortController | undefined = undefined;
  /** Stops the request on its connection. */
  #abortSent: Abort | undefined = undefined;
  /** Why it ended before it was on a connection. */
  #givenUp: { readonly reason: unknown } | undefined = undefined;
  #isHandingOver = false;

  constructor(
    readonly plan: Plan,
    readonly request: DispatchOptions,
  ) {}

  /** Gives the caller the means to abort. */
  protected abstract tellStart(): void;
  protected abstract tellFailure(error: unknown): void;
  /** This, as undici takes it. */
  protected abstract get self(): Parameters<Dispatch>[1];

  begin(): void {
    const { plan, request } = this;
    const { exchange } = plan;
    try {
      // Early, since a caller can only take back what it was given the means to abort.
      this.tellStart();
    } catch (error) {
      this.#giveUp(error);
    }
    if (this.#phase === "over") return;
    const url = requestUrl(request, plan.origin);
    if (url === undefined) {
      this.#giveUp(new TypeError(NO_ORIGIN));
      return;
    }
    const { [PACED]: outer, headers } = request;
    const handed = outer?.plan.exchange === exchange ? outer.#handOver() : undefined;
    // When this dispatcher is the global one, questions for robots.txt and the tasks of `run` come this way.
    const own = handed === undefined && !plan.isFetch ? exchange.relay?.take(url) : undefined;
    const taken = own?.isAsked === true ? own.flight : handed;
    if (taken !== undefined) {
      this.#depart(taken);
      return;
    }
    const signal = plan.isFetch ? plan.signal : this.#makeSignal();
    const ownAgent = (): string | undefined => userAgentOf(headers);
    const options = plan.optionsOf(request, url);
    const errand: Errand = { url, signal, ownAgent, options, dispatcher: plan.given, turn: own?.flight };
    if (plan.isFetch) this.#enterByFetch(errand);
    else this.#enter(errand);
  }

  /** Most need not wait: then there is no promise to wait for either. */
  #enterByFetch(errand: Errand): void {
    try {
      const entered = this.plan.exchange.enter(errand);
      if (entered instanceof Flight) this.#depart(entered);
      else this.#departLater(entered);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #makeSignal(): AbortSignal {
    this.#wait = new AbortController();
    return this.#wait.signal;
  }

  #enter(errand: Errand): void {
    const unwatch = watchBody(this.request.body, (error) => this.#giveUp(error));
    this.#departLater(this.plan.exchange.admit(errand), unwatch);
  }

  #departLater(entered: Promise<Flight>, unwatch?: () => void): void {
    entered.then(
      (flight) => {
        unwatch?.();
        this.#depart(flight);
      },
      (error: unknown) => {
        unwatch?.();
        this.#giveUp(error);
      },
    );
  }

  /** The caller wants no answer any more. */
  protected stop(reason: unknown = abortError()): void {
    if (this.#phase === "waiting" || this.#phase === "handed") this.#giveUp(reason);
    else this.#abortSent?.(reason);
  }

  /** It is about to be written to a connection. False when it was given up before; then it is stopped here. */
  protected started(abort: Abort): boolean {
    if (this.#givenUp !== undefined) {
      abort(this.#givenUp.reason);
      return false;
    }
    this.#abortSent = abort;
    this.#phase = "started";
    return true;
  }

  /** Headers are there. Those of a 1xx are not the answer, and nobody reads the body of a redirect. */
  protected answered(status: number, headers: HeadersLike): void {
    if (status < FINAL_STATUS_FROM) return;
    this.plan.answered?.();
    if (!REDIRECTS.includes(status)) {
      this.#flight?.answered(status, headers);
      return;
    }
    if (this.#flight !== undefined) this.plan.redirected?.(this.#flight.permit.key);
    this.#flight?.finished(status, headers);
  }

  /** Notes a chunk that the caller was given. Whether more may come. */
  protected goesOn(chunk: unknown, wantsMore: boolean): boolean {
    const { byteLength, length = 0 } = chunk as { readonly byteLength?: number; readonly length?: number };
    this.#bytes += (byteLength ?? length) + CHUNK_COST;
    if (wantsMore || this.#bytes < READ_AHEAD_BYTES) return true;
    const flight = this.#flight;
    if (flight?.isOver === false) this.#unread ??= new UnreadBody(flight);
    this.#unread?.paused();
    return false;
  }

  /** The reader of the body goes on. */
  protected resumed(): void {
    this.#unread?.resumed();
  }

  /** The socket belongs to the caller from now on. */
  protected upgraded(status: number, headers: HeadersLike): void {
    this.#phase = "over";
    this.#flight?.finished(status, headers);
  }

  /** The last byte is there. */
  protected completed(): void {
    this.#phase = "over";
    this.#flight?.done();
  }

  /** It failed in undici. False when the caller has been told of an end already. */
  protected failed(error: unknown): boolean {
    if (this.#givenUp !== undefined) return false;
    // Refused on the spot: the arguments are wrong or the dispatcher is closed, and the site has seen nothing.
    if (this.#isHandingOver && this.#phase === "handed") this.#flight?.unused();
    else this.#flight?.failed(error);
    this.#phase = "over";
    return true;
  }

  #depart(flight: Flight): void {
    if (this.#phase === "over") {
      flight.unused();
      return;
    }
    this.#phase = "handed";
    this.#flight = flight;
    this.plan.granted?.(flight);
    this.#isHandingOver = true;
    try {
      this.plan.send(this.#requestToSend(), this.self);
    } catch (error) {
      if (this.failed(error)) this.tellFailure(error);
    } finally {
      this.#isHandingOver = false;
    }
  }

  #requestToSend(): DispatchOptions {
    const { request, plan } = this;
    const { userAgent } = plan.exchange.identity;
    if (plan.isFetch && userAgent === undefined) {
      (request as { [PACED]?: PacedHandler })[PACED] = this;
      return request;
    }
    return { ...request, headers: withUserAgent(request.headers, userAgent), [PACED]: this };
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
    this.#wait?.abort(reason);
    // Nothing was sent, and nothing will be. A caller who has waited too long for a connection has learned something, though.
    if (failureOf(reason) === "timeout") this.#flight?.failed(reason);
    else this.#flight?.unused();
    this.plan.refused?.(reason);
    this.tellFailure(reason);
  }
}

const NO_ORIGIN =
  "politeInterceptor cannot tell which site a request is for: it has no origin. Compose an Agent, " +
  "give the request an origin, or write politeInterceptor(limiter, { origin }).";

/** The error undici makes of an abort without a reason. */
function abortError(): Error {
  return Object.assign(new Error("Request aborted"), { name: "AbortError", code: "UND_ERR_ABORTED" });
}
