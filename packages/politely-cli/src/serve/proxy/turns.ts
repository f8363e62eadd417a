import { PolitelyError } from "politely";
import { asProblem, stoppingProblem } from "../api/asProblem.js";
import type { ServiceLimiter, ServicePermit, Soon } from "../serviceLimiter.js";
import { ProxyProblem } from "./proxyProblem.js";

/** What the proxy asks of a limiter. */
export type TurnLimiter = Pick<ServiceLimiter, "acquire">;

/** How turns are waited for. */
export interface TurnsOptions {
  readonly limiter: TurnLimiter;
  /** How many may wait at once, over all hosts. */
  readonly maxWaiting: number;
  /** Hears of each that found too many waiting. Default: nobody does. */
  readonly onFull?: (() => void) | undefined;
  log(line: string): void;
}

const FULL_RETRY_MS = 1_000;

/** Lets requests wait for their turn, and turns what the limiter refuses into an answer. */
export class Turns {
  readonly #waits = new Set<AbortController>();
  #isStopping = false;

  constructor(readonly options: TurnsOptions) {}

  /** How many wait now. */
  get waitingCount(): number {
    return this.#waits.size;
  }

  /**
   * Waits until a request to `url` may start. Throws a `ProxyProblem` when it is refused: 429 past the deadline, 503 when too many wait or the
   * service stops, 400 for a host that makes no sense. Throws `away.reason` once the client has gone; a grant in that moment is given back.
   */
  async take(url: string, away: AbortSignal): Promise<Turn> {
    const { limiter, maxWaiting, onFull } = this.options;
    if (this.#isStopping) throw stoppingProblem();
    if (this.waitingCount >= maxWaiting) {
      onFull?.();
      throw tooMany(maxWaiting);
    }
    const wait = new AbortController();
    const leave = (): void => wait.abort(away.reason);
    away.addEventListener("abort", leave, { once: true });
    if (away.aborted) leave();
    this.#waits.add(wait);
    try {
      const { signal } = wait;
      const permit = await limiter.acquire(url, { signal });
      const turn = new Turn(permit, this.options);
      if (!signal.aborted) return turn;
      // Granted in the moment in which nobody wanted it any more.
      turn.end("unused");
      throw signal.reason;
    } catch (error) {
      if (away.aborted) throw away.reason;
      throw wait.signal.aborted ? stoppingProblem() : refusalOf(error);
    } finally {
      this.#waits.delete(wait);
      away.removeEventListener("abort", leave);
    }
  }

  /** Lets nobody in any more; those who wait get a 503. */
  stop(): void {
    this.#isStopping = true;
    for (const wait of this.#waits) wait.abort();
  }
}

type EndOutcome = Parameters<ServicePermit["release"]>[0];

/** A granted start. It ends once; what comes after is ignored. */
export class Turn {
  #isOver = false;

  constructor(
    readonly permit: ServicePermit,
    readonly options: Pick<TurnsOptions, "log">,
  ) {}

  get waitedMs(): number {
    return this.permit.waitedMs;
  }

  /** The headers of the answer are there: what they say is heard now, the place is kept. */
  answered(status: number, headers: Readonly<Record<string, string | readonly string[] | undefined>>): void {
    if (!this.#isOver) this.#heed(() => this.permit.report({ status, headers }));
  }

  /** It is over. Without an outcome nothing is learned; `"unused"` gives back what it took. */
  end(outcome?: EndOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#heed(() => this.permit.release(outcome));
  }

  /** The limiter never refuses an outcome that makes sense, and no request may fail over one. */
  #heed(tell: () => Soon<void>): void {
    const complain = (error: unknown): void => this.options.log(`proxy: an answer was not counted: ${String(error)}`);
    try {
      Promise.resolve(tell()).catch(complain);
    } catch (error) {
      complain(error);
    }
  }
}

/** What a client is told when the limiter says no. A site's own 429 has no `Proxy-Status` of politely. */
function refusalOf(error: unknown): unknown {
  if (error instanceof PolitelyError) {
    const { status, detail, more } = asProblem(error);
    return new ProxyProblem(status, detail, { ...more, proxyError: "http_request_denied" });
  }
  if (error instanceof TypeError || error instanceof RangeError) {
    return new ProxyProblem(400, error.message, { proxyError: "http_request_error" });
  }
  return error;
}

function tooMany(most: number): ProxyProblem {
  const more = { code: "full", retryAfterMs: FULL_RETRY_MS, proxyError: "connection_limit_reached" };
  return new ProxyProblem(
    503,
    `${most} requests already wait in the proxy. Come back later, or send fewer at once.`,
    more,
  );
}
