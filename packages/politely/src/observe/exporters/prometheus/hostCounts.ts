import { Histogram } from "../histogram.js";
import { type Series, type SeriesMaker, UNKNOWN } from "../series.js";

/** Codes of refusals that are told apart; with more, the rest is `"other"`. */
const CODES_MOST = 20;

/** The upper bounds of each histogram. */
export interface Bounds {
  readonly wait: readonly number[];
  readonly interval: readonly number[];
  readonly inFlight: readonly number[];
}

/** Everything that was counted of one host, from the beginning. Nothing of it ever falls. */
export class HostCounts implements Series {
  readonly counters = { starts: 0, unused: 0, cancelled: 0, expired: 0, throttled: 0, cooldowns: 0, lapsed: 0 };
  readonly refusedBy = new Map<string, number>();
  readonly wait: Histogram;
  readonly interval: Histogram;
  readonly inFlight: Histogram;

  constructor({ wait, interval, inFlight }: Bounds) {
    this.wait = new Histogram(wait);
    this.interval = new Histogram(interval);
    this.inFlight = new Histogram(inFlight);
  }

  started(waitedMs: number, intervalMs: number, inFlight: number): void {
    this.counters.starts += 1;
    if (waitedMs !== UNKNOWN) this.wait.add(waitedMs / 1_000);
    if (intervalMs !== UNKNOWN) this.interval.add(intervalMs / 1_000);
    if (inFlight !== UNKNOWN) this.inFlight.add(inFlight);
  }

  unused(): void {
    this.counters.unused += 1;
  }

  refused(code: string): void {
    this.#refused(code, 1);
  }

  cancelled(): void {
    this.counters.cancelled += 1;
  }

  expired(): void {
    this.counters.expired += 1;
  }

  cooledDown(): void {
    this.counters.cooldowns += 1;
  }

  throttled(times: number): void {
    this.counters.throttled += times;
  }

  lapsed(times: number): void {
    this.counters.lapsed += times;
  }

  /** Adds everything that `other` has counted. */
  absorb(other: HostCounts): void {
    for (const name of Object.keys(this.counters) as (keyof HostCounts["counters"])[]) {
      this.counters[name] += other.counters[name];
    }
    for (const [code, count] of other.refusedBy) this.#refused(code, count);
    this.wait.absorb(other.wait);
    this.interval.absorb(other.interval);
    this.inFlight.absorb(other.inFlight);
  }

  #refused(code: string, times: number): void {
    const known = this.refusedBy.has(code) || this.refusedBy.size < CODES_MOST - 1 ? code : "other";
    this.refusedBy.set(known, (this.refusedBy.get(known) ?? 0) + times);
  }
}

/** Makes counts with these bounds. Who loses its label leaves what it has counted to the others. */
export function hostCountsMaker(bounds: Bounds): SeriesMaker<HostCounts> {
  return { make: () => new HostCounts(bounds), absorb: (to, from) => to.absorb(from) };
}
