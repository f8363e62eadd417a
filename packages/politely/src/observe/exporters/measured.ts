import type { LimiterEvent, Stats } from "../types.js";

/** A value now, or a promise of it. */
export type Soon<T> = T | Promise<T>;

/** The part of a limiter that exporters call. All four kinds fit: for hosts or one key, in memory or with a store. */
export interface MeasuredLimiter {
  /** Every host that is kept; of a limiter for one key, that one. */
  stats(): Soon<readonly Stats[] | Stats>;
  /** The same rows one by one, read in small parts where it is there: of limiters for hosts. */
  eachStats?(): Iterable<Stats>;
  subscribe(listener: (event: LimiterEvent) => void): () => void;
}

/** Says how many units the bucket of a host has now, among other things. */
export type TokensOf = (host: string) => Soon<{ readonly tokens?: number | undefined } | undefined>;

/** What all exporters can be told. */
export interface MeasureOptions {
  /** How many hosts have a label of their own: 0 to 10,000. All others share `"other"`. */
  readonly maxHosts?: number | undefined;
  /**
   * Asks for the tokens of a host: `(host) => limiter.stats(host)`. For limiters with a store, where the bucket is in the store: each reading then
   * puts one question to it for each of the 20 most active hosts. One that fails or takes over 2 s has no tokens. Default: not asked.
   */
  readonly tokensOf?: TokensOf | undefined;
}

/** The statistics as a list, whatever kind the limiter is. */
export function rowsOf(stats: readonly Stats[] | Stats): readonly Stats[] {
  return isList(stats) ? stats : [stats];
}

function isList(stats: readonly Stats[] | Stats): stats is readonly Stats[] {
  return Array.isArray(stats);
}
