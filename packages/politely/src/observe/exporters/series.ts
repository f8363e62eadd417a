/** Stands for a number that is not known. */
export const UNKNOWN = -1;

/** Where the numbers of one host go, or of all that share the label `"other"`. Called for every event, so it must be quick and must not throw. */
export interface Series {
  /** A start. Each number may be `UNKNOWN`: a recorded start has no wait and no place, a first one no interval. */
  started(waitedMs: number, intervalMs: number, inFlight: number): void;
  unused(): void;
  refused(code: string): void;
  cancelled(): void;
  expired(): void;
  cooledDown(): void;
  throttled(times: number): void;
  lapsed(times: number): void;
}

/** How series are made, and what becomes of one whose host loses its label. */
export interface SeriesMaker<S extends Series> {
  make(label: string): S;
  /** Moves what `from` has counted to `to`, where that has to be done for sums to stay right. `from` is not used again. */
  absorb(to: S, from: S): void;
}
