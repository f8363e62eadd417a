import { Heap, type Positioned } from "../../engine/heap.js";
import { toUs } from "../../engine/systemClock.js";
import { showValue } from "../../policy/showValue.js";
import type { Clock } from "../../types.js";
import type { OriginRequest } from "./types.js";

/** One request's stay in one count. */
interface Stay extends Positioned {
  untilUs: number;
}

/**
 * Counts who is in flight at an instant: from arrival up to, not including, the end.
 *
 * Who ends now has left before who arrives now, whatever the order of their timers.
 */
export class InFlight {
  readonly #stays = new Heap<Stay>((a, b) => a.untilUs < b.untilUs);
  /** The most that were ever in flight together. */
  peak = 0;

  countAt(nowUs: number): number {
    for (let first = this.#stays.peek(); first !== undefined && first.untilUs <= nowUs; first = this.#stays.peek()) {
      this.#stays.remove(first);
    }
    return this.#stays.size;
  }

  /** Lets one in who arrives now. Gives what says when it ends, to be called as soon as that is known, and again if it ends earlier. */
  enter(nowUs: number): (untilUs: number) => void {
    const stay = { position: -1, untilUs: Number.POSITIVE_INFINITY };
    this.peak = Math.max(this.peak, this.countAt(nowUs) + 1);
    this.#stays.push(stay);
    return (untilUs) => {
      stay.untilUs = Math.min(stay.untilUs, untilUs);
      if (stay.position >= 0) this.#stays.update(stay);
    };
  }
}

/** What was seen: of one host, or of the whole origin. Always up to date; exact to the microsecond. */
export class OriginCounts {
  readonly #clock: Clock;
  readonly #keep: number;
  readonly #inFlight = new InFlight();
  /** Every arrival, in order, in whole microseconds. */
  readonly #arrivalsUs: number[] = [];
  #kept: OriginRequest[] = [];
  #shown: readonly OriginRequest[] | undefined;
  #refused = 0;
  #duringBan = 0;
  #beforeRetryAfter = 0;
  #shortestGapUs = Number.POSITIVE_INFINITY;

  /** @internal */
  constructor(clock: Clock, keepRequests: number) {
    this.#clock = clock;
    this.#keep = keepRequests;
  }

  /** The newest requests, oldest first; at most `keepRequests`. */
  get requests(): readonly OriginRequest[] {
    // One copy between two arrivals, so that a loop over requests[index] stays cheap.
    this.#shown ??= Object.freeze(this.#kept.slice(-this.#keep));
    return this.#shown;
  }

  /** All that arrived, those refused included. */
  get total(): number {
    return this.#arrivalsUs.length;
  }

  /** Refused by a limit. A status from `answers` is no refusal. */
  get refused(): number {
    return this.#refused;
  }

  /** From arrival until the last byte is sent, the client goes away, or the connection breaks. */
  get inFlight(): number {
    return this.#inFlight.countAt(toUs(this.#clock.now()));
  }

  /** The most that were in flight together. */
  get peakInFlight(): number {
    return this.#inFlight.peak;
  }

  /** Arrivals while a penalty box held a ban against them; the one that started it not included. */
  get arrivalsDuringBan(): number {
    return this.#duringBan;
  }

  /** Arrivals after an answer with `Retry-After` went out and before its time was over, by what it said, true or not. */
  get arrivalsBeforeRetryAfter(): number {
    return this.#beforeRetryAfter;
  }

  /** The least time between two arrivals in a row; Infinity before the second. */
  get shortestGapMs(): number {
    return this.#shortestGapUs / 1_000;
  }

  /** The most arrivals in any interval (t, t + P]. Two that are exactly P apart are never in one. Throws `RangeError` unless P is above 0. */
  mostInAny(periodMs: number): number {
    if (typeof periodMs !== "number" || !(periodMs > 0)) {
      throw new RangeError(`periodMs must be a number of milliseconds above 0; got ${showValue(periodMs)}.`);
    }
    const atUs = this.#arrivalsUs;
    let most = 0;
    let first = 0;
    for (let last = 0; last < atUs.length; last += 1) {
      // The interval is open on the left: exactly one period ago is outside.
      while (atUs[last] - atUs[first] >= periodMs * 1_000) first += 1;
      most = Math.max(most, last - first + 1);
    }
    return most;
  }

  /**
   * Counts one arrival. Gives what says when it ends.
   *
   * @internal
   */
  add(
    request: OriginRequest,
    was: { readonly isDuringBan: boolean; readonly isBeforeRetryAfter: boolean },
  ): (untilUs: number) => void {
    const atUs = toUs(request.atMs);
    const previousUs = this.#arrivalsUs.at(-1) ?? Number.NEGATIVE_INFINITY;
    this.#shortestGapUs = Math.min(this.#shortestGapUs, atUs - previousUs);
    this.#arrivalsUs.push(atUs);
    this.#refused += Number(request.refusedBy !== undefined);
    this.#duringBan += Number(was.isDuringBan);
    this.#beforeRetryAfter += Number(was.isBeforeRetryAfter);
    this.#shown = undefined;
    this.#kept.push(request);
    if (this.#kept.length >= 2 * this.#keep) this.#kept = this.#kept.slice(-this.#keep);
    return this.#inFlight.enter(atUs);
  }
}
