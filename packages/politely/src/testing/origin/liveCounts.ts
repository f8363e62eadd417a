import type { OriginCounts, OriginRequest } from "./types.js";

/** Counts that are looked up each time they are read, so that whoever holds them always sees the present ones. */
export class LiveCounts implements OriginCounts {
  readonly #present: () => OriginCounts;

  constructor(present: () => OriginCounts) {
    this.#present = present;
  }

  /** The newest requests, oldest first; at most `keepRequests`. */
  get requests(): readonly OriginRequest[] {
    return this.#present().requests;
  }

  /** All that arrived, those refused included. */
  get total(): number {
    return this.#present().total;
  }

  /** Refused by a limit. A status from `answers` is no refusal. */
  get refused(): number {
    return this.#present().refused;
  }

  /** From arrival until the last byte is sent, the client goes away, or the connection breaks. */
  get inFlight(): number {
    return this.#present().inFlight;
  }

  /** The most that were in flight together. */
  get peakInFlight(): number {
    return this.#present().peakInFlight;
  }

  /** Arrivals while a penalty box held a ban against them; the one that started it not included. */
  get arrivalsDuringBan(): number {
    return this.#present().arrivalsDuringBan;
  }

  /** Arrivals after an answer with `Retry-After` went out and before its time was over, by what it said, true or not. */
  get arrivalsBeforeRetryAfter(): number {
    return this.#present().arrivalsBeforeRetryAfter;
  }

  /** The least time between two arrivals in a row; Infinity before the second. */
  get shortestGapMs(): number {
    return this.#present().shortestGapMs;
  }

  /** The most arrivals in any interval (t, t + P]. Two that are exactly P apart are never in one. Throws `RangeError` unless P is above 0. */
  mostInAny(periodMs: number): number {
    return this.#present().mostInAny(periodMs);
  }
}
