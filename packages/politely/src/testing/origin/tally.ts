import { toUs } from "../../engine/systemClock.js";
import { showValue } from "../../policy/showValue.js";
import type { Clock } from "../../types.js";
import { InFlight } from "./inFlight.js";
import type { OriginCounts, OriginRequest } from "./types.js";

/** Counts what a host, or a whole origin, has seen. */
export class Tally implements OriginCounts {
  readonly flights = new InFlight();
  readonly #clock: Clock;
  readonly #keep: number;
  /** Every arrival, in order, in whole microseconds. */
  readonly #arrivalsUs: number[] = [];
  #kept: OriginRequest[] = [];
  #shown: readonly OriginRequest[] | undefined;
  #refused = 0;
  #duringBan = 0;
  #beforeRetryAfter = 0;
  #shortestGapUs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, keepRequests: number) {
    this.#clock = clock;
    this.#keep = keepRequests;
  }

  get requests(): readonly OriginRequest[] {
    // One copy between two arrivals, so that a loop over requests[index] stays cheap.
    this.#shown ??= Object.freeze(this.#kept.slice(-this.#keep));
    return this.#shown;
  }

  get total(): number {
    return this.#arrivalsUs.length;
  }

  get refused(): number {
    return this.#refused;
  }

  get inFlight(): number {
    return this.flights.countAt(toUs(this.#clock.now()));
  }

  get peakInFlight(): number {
    return this.flights.peak;
  }

  get arrivalsDuringBan(): number {
    return this.#duringBan;
  }

  get arrivalsBeforeRetryAfter(): number {
    return this.#beforeRetryAfter;
  }

  get shortestGapMs(): number {
    return this.#shortestGapUs / 1_000;
  }

  mostInAny(periodMs: number): number {
    if (typeof periodMs !== "number" || !(periodMs > 0)) {
      throw new RangeError(`periodMs must be a number of milliseconds above 0; got ${showValue(periodMs)}.`);
    }
    const periodUs = periodMs * 1_000;
    const atUs = this.#arrivalsUs;
    let most = 0;
    let first = 0;
    for (let last = 0; last < atUs.length; last += 1) {
      // The interval is open on the left: exactly one period ago is outside.
      while (atUs[last] - atUs[first] >= periodUs) first += 1;
      most = Math.max(most, last - first + 1);
    }
    return most;
  }

  /** Counts one arrival. */
  add(
    request: OriginRequest,
    atUs: number,
    was: { readonly isDuringBan: boolean; readonly isBeforeRetryAfter: boolean },
  ): void {
    const previousUs = this.#arrivalsUs.at(-1);
    if (previousUs !== undefined) this.#shortestGapUs = Math.min(this.#shortestGapUs, atUs - previousUs);
    this.#arrivalsUs.push(atUs);
    if (request.refusedBy !== undefined) this.#refused += 1;
    if (was.isDuringBan) this.#duringBan += 1;
    if (was.isBeforeRetryAfter) this.#beforeRetryAfter += 1;
    this.#shown = undefined;
    this.#kept.push(request);
    if (this.#kept.length >= 2 * this.#keep) this.#kept = this.#kept.slice(-this.#keep);
  }
}
