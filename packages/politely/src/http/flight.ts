import type { Clock, HeadersLike, Outcome, Permit } from "../types.js";
import { causeOf, failureOf } from "./failure.js";

/** What a flight needs of its permit. */
type FlightPermit = Pick<Permit, "key" | "startedAtMs" | "waitedMs" | "report" | "release">;

/** What the permit of a limiter with a store knows beside: when it was granted, on the clock of this process. */
interface LocalStart {
  readonly localStartedAtMs?: number;
}

/** One request on its way, from the grant to its last byte. Each end counts once; what comes after is ignored. */
export class Flight {
  #isOver = false;
  #isAnswered = false;
  /** The caller's. Once it is aborted, a failure says nothing about the site. */
  signal: AbortSignal | undefined = undefined;
  /** Called once when it is over. */
  onEnd: (() => void) | undefined = undefined;

  constructor(
    public permit: FlightPermit,
    readonly clock: Clock,
  ) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The headers are there: what they say is heard now, the place is kept. */
  answered(status: number, headers: HeadersLike): void {
    this.#isAnswered = true;
    if (!this.#isOver) this.permit.report({ status, headers });
  }

  /** The whole answer is there at once. */
  finished(status: number, headers: HeadersLike): void {
    this.#end({ status, headers });
  }

  /** The last byte has arrived, or nobody wants the rest. */
  done(): void {
    this.#end(undefined);
  }

  /**
   * It failed. `wasSent` says that it may have reached the site although `answered` was not called.
   *
   * Once its headers were there, their status alone counts. What was sent is never given back, whatever the error looks like. An
   * abort is neutral, for its reason may be any error; only a caller's own timeout still counts as no answer in time, if most of
   * that time was spent on the way.
   */
  failed(error: unknown, wasSent = false): void {
    const kind = this.#isAnswered ? undefined : failureOf(error);
    const isGivenUp = this.signal?.aborted === true && (kind !== "timeout" || this.#wasMostlyQueued);
    if (kind === undefined || isGivenUp || (kind === "unused" && wasSent)) this.#end(undefined);
    else this.#end(kind === "unused" ? kind : { kind, because: causeOf(error) });
  }

  get #wasMostlyQueued(): boolean {
    // With a store, `startedAtMs` is of another timeline.
    const { startedAtMs, waitedMs, localStartedAtMs = startedAtMs } = this.permit as FlightPermit & LocalStart;
    return this.clock.now() - localStartedAtMs < waitedMs;
  }

  /** Frees the place; the rest of the answer still comes, and ends it. */
  letGo(): void {
    if (!this.#isOver) this.permit.release();
  }

  /** Gives its permit to another flight, for whoever is nearer to the site. This one hears nothing more; its end only frees the place. */
  lend(): Flight {
    const { key, startedAtMs, waitedMs } = this.permit;
    const inner = new Flight(this.permit, this.clock);
    inner.signal = this.signal;
    const free = (): void => inner.letGo();
    this.permit = { key, startedAtMs, waitedMs, report: () => undefined, release: free };
    return inner;
  }

  /** It was never sent, or answered without the site: what it took goes back. */
  unused(): void {
    this.#end("unused");
  }

  #end(outcome: Outcome | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onEnd?.();
    this.permit.release(outcome);
  }
}
