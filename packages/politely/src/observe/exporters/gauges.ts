import type { Stats } from "../types.js";

/** What is true of a host now, or of several added up. */
export interface Gauges {
  inFlight: number;
  waiting: number;
  /** The longest, where there are several hosts. */
  cooldownMs: number;
  /** Of a host with a label of its own and a rate; undefined otherwise. */
  tokens: number | undefined;
}

/** Nothing. */
export function noGauges(): Gauges {
  return { inFlight: 0, waiting: 0, cooldownMs: 0, tokens: undefined };
}

/** Adds a host. Tokens of different buckets cannot be added, so only a host of its own has them. */
export function addRow(gauges: Gauges, row: Stats, isAlone: boolean): void {
  gauges.inFlight += row.inFlight;
  gauges.waiting += row.waiting;
  gauges.cooldownMs = Math.max(gauges.cooldownMs, row.cooldownMs);
  if (isAlone) gauges.tokens = row.tokens;
}
