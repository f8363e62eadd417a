import { type Series, type SeriesMaker, UNKNOWN } from "../series.js";
import { Values } from "./values.js";

/** Codes of refusals that are told apart; with more, the rest is `"other"`. */
const CODES_MOST = 20;

/** The names of what is counted, as they stand in a line. */
const COUNTS = [
  "Starts",
  "Unused",
  "Refused",
  "Cancelled",
  "Expired",
  "Throttled",
  "Cooldowns",
  "LapsedPermits",
] as const;
type Counted = Record<(typeof COUNTS)[number], number>;

/** What was counted of one host since the last flush. */
export interface Taken {
  readonly counts: Readonly<Counted>;
  readonly refusedBy: Readonly<Record<string, number>>;
  readonly waits: readonly number[];
  readonly intervals: readonly number[];
  readonly concurrency: readonly number[];
  readonly isEmpty: boolean;
}

/** Counts one host from flush to flush. */
export class HostWindow implements Series {
  #counts = noCounts();
  #refusedBy = new Map<string, number>();
  #waits = new Values();
  #intervals = new Values();
  #concurrency = new Values();

  started(waitedMs: number, intervalMs: number, inFlight: number): void {
    this.#counts.Starts += 1;
    if (waitedMs !== UNKNOWN) this.#waits.add(waitedMs / 1_000);
    if (intervalMs !== UNKNOWN) this.#intervals.add(intervalMs / 1_000);
    if (inFlight !== UNKNOWN) this.#concurrency.add(inFlight);
  }

  unused(): void {
    this.#counts.Unused += 1;
  }

  refused(code: string): void {
    this.#counts.Refused += 1;
    this.#refuse(code, 1);
  }

  cancelled(): void {
    this.#counts.Cancelled += 1;
  }

  expired(): void {
    this.#counts.Expired += 1;
  }

  cooledDown(): void {
    this.#counts.Cooldowns += 1;
  }

  throttled(times: number): void {
    this.#counts.Throttled += times;
  }

  lapsed(times: number): void {
    this.#counts.LapsedPermits += times;
  }

  /** Adds everything that `other` has counted since the last flush. */
  absorb(other: HostWindow): void {
    for (const name of COUNTS) this.#counts[name] += other.#counts[name];
    for (const [code, count] of other.#refusedBy) this.#refuse(code, count);
    this.#waits.absorb(other.#waits);
    this.#intervals.absorb(other.#intervals);
    this.#concurrency.absorb(other.#concurrency);
  }

  /** Gives what was counted and begins at zero again. */
  take(): Taken {
    const counts = this.#counts;
    const taken = {
      counts,
      refusedBy: Object.fromEntries(this.#refusedBy),
      waits: this.#waits.list(),
      intervals: this.#intervals.list(),
      concurrency: this.#concurrency.list(),
      isEmpty: COUNTS.every((name) => counts[name] === 0),
    };
    this.#counts = noCounts();
    this.#refusedBy = new Map();
    this.#waits = new Values();
    this.#intervals = new Values();
    this.#concurrency = new Values();
    return taken;
  }

  #refuse(code: string, times: number): void {
    const known = this.#refusedBy.has(code) || this.#refusedBy.size < CODES_MOST - 1 ? code : "other";
    this.#refusedBy.set(known, (this.#refusedBy.get(known) ?? 0) + times);
  }
}

/** Makes windows. Who loses its label leaves what it has counted since the last flush to the others. */
export const hostWindowMaker: SeriesMaker<HostWindow> = {
  make: () => new HostWindow(),
  absorb: (to, from) => to.absorb(from),
};

function noCounts(): Counted {
  return { Starts: 0, Unused: 0, Refused: 0, Cancelled: 0, Expired: 0, Throttled: 0, Cooldowns: 0, LapsedPermits: 0 };
}
