import type { LimitKind } from "../observe/types.js";
import type { Adaptive } from "./adaptive.js";
import type { Calendar, WallCalendar } from "./calendar.js";
import type { Headroom } from "./headroom.js";
import type { Incident } from "./incident.js";
import type { Rule } from "./rule.js";

// Read this file first. It says what is known of a key, and in what words the limits speak about it. Times are whole
// microseconds of one timeline; a start is the instant at which a permit was granted.

/** What one start takes from a key. Gap and places count requests; the rest counts units. */
export interface Cost {
  readonly rate: number;
  readonly window: number;
  readonly quota: number;
}

/** The cost of a request that says nothing about it. */
export const ONE: Cost = { rate: 1, window: 1, quota: 1 };

/** The cost of a request that was never sent. */
export const NOTHING: Cost = { rate: 0, window: 0, quota: 0 };

/** Whether a cost is nothing at all, or a correction changes nothing. */
export function isNothing({ rate, window, quota }: Cost): boolean {
  return rate === 0 && window === 0 && quota === 0;
}

/** Those who go first: how many requests, and what they cost together. */
export interface Ahead {
  readonly requests: number;
  readonly units: Cost;
}

/** Nobody goes first. */
export const NOBODY: Ahead = { requests: 0, units: NOTHING };

/**
 * The block: where the numbers that every key has lie in its row. `LAST_US` to `SEEN_US` count 8-byte words, the others 4-byte words.
 *
 * Take the places out of this object once, at the top of a file: V8 reads an imported constant anew at each use.
 */
export const ROW = {
  /** The last start; minus Infinity before the first. */
  LAST_US: 0,
  /** What is owed to the bucket, in unit-microseconds of the key's rate, and when that was noted. */
  OWED: 1,
  SEEN_US: 2,
  /** The number of the rule that the block was last read under, and flags. */
  PROFILE: 6,
  /** Starts in flight that no limit has to know one by one. */
  FLIGHT: 7,
  /** Units ever taken, modulo 2^32, less those given back by the newest start. */
  UNITS: 8,
} as const;

/** One key, as the limits see it: its block, and on demand what few keys have. */
export interface Key {
  readonly words: Float64Array;
  readonly halves: Uint32Array;
  /** The block's first word; its first 4-byte word is at twice that. */
  readonly at: number;
  /** What few keys have; undefined for most. */
  readonly rest: Rest | undefined;
  /** The wall clock, and what it says of calendars. */
  readonly calendar: WallCalendar;
  /** Makes the rest where there is none. */
  needRest(): Rest;
}

/** What few keys have, and most only for a while. */
export class Rest {
  /** Starts that windows count: an exact log, and one for each window that counts in grains. */
  logs: Log[] | undefined = undefined;
  /** Starts in flight, where a limit must know each of them. */
  places: Places | undefined = undefined;
  /** `UNITS` when windows were new, and starts in flight counted as a unit each, since nothing was known but their number. */
  seedUnits: number | undefined = undefined;
  /** The last start without a place, since all that follow have one. */
  looseUs: number | undefined = undefined;
  /** The newest answer, from which gaps run with `countFrom: "answer"`. */
  answeredUs = Number.NEGATIVE_INFINITY;
  /** What was spent of a quota in the period that begins at `period`, in milliseconds of the wall clock. */
  quota: (Calendar & { readonly period: number; readonly used: number }) | undefined = undefined;
  /** The rate that a debt is measured in while the rule has none. */
  measure: Bucket | undefined = undefined;
  /** What people, the site and its answers ask for on top of the rule. */
  holds: Holds | undefined = undefined;
  /** A `reset` of pacing, or of all: starts up to here count no more, and give nothing back. */
  cut: { readonly atUs: number; readonly units: number } | undefined = undefined;
  /** Starts returned unused that followed one another and were not the newest: the start before them, and `UNITS` before and after them. */
  returned: { readonly previousUs: number; readonly fromUnits: number; readonly toUnits: number } | undefined =
    undefined;
  /** For statistics alone: permits never released, and starts that were in flight when the statistics were reset. */
  kept: { lapsed: number; carried: number } | undefined = undefined;
}

/** Starts of one key, oldest first, one entry for each instant. */
export interface Log {
  /** The longest period that it serves. Starts older than that are forgotten. */
  readonly spanUs: number;
  /** Starts lie on multiples of this, rounded up. */
  readonly grainUs: number;
  /** A start lies less than this after its instant: more than a grain where the log began as a copy of others. */
  readonly blurUs: number;
  readonly atUs: number[];
  /** For each entry the units of all starts up to it, so that what a window holds is a difference. */
  readonly sums: number[];
}

/** What holds a key, or slows it down, beside its rule. */
export interface Holds {
  /** Bad answers, and the permit that goes first after the cooldown. */
  incident?: Incident | undefined;
  probe?: unknown;
  /** Held by a person until then. */
  pausedUntilUs?: number | undefined;
  /** What the site's headers, its robots.txt and its answers ask for. */
  headers?: Headroom | undefined;
  robots?: Slowdown | undefined;
  adaptive?: Adaptive | undefined;
}

/** The numbers of a bucket: `rateCount` units come back each `ratePerUs`, up to `burst`. */
export type Bucket = Pick<Rule, "rateCount" | "ratePerUs" | "burst">;

/** A bound that comes on top of a key's rule. It can only make starts later. */
export interface Slowdown {
  /** The least time between two starts; 0 for none. */
  readonly gapUs: number;
  /** No start before this instant. */
  readonly holdUntilUs: number;
  /** From here on it bounds nothing. */
  readonly untilUs: number;
  /** Who asked for it and how, for people. */
  readonly because: string;
}

/** A start in flight that holds a place. */
export interface Place {
  readonly startedUs: number;
  /** What it costs in windows, whether the key has any or not. */
  readonly units: number;
  /** Units that enter the windows at the answer; 0 once they are in. */
  pendingUnits: number;
  /** When it was free again, since it was held for longer than `maxHold`. */
  lapsedUs: number | undefined;
  /** Whose it is, for those who are told that it lapsed. */
  permit: object | undefined;
  previous: Place | undefined;
  next: Place | undefined;
}

/** The starts in flight of one key, oldest first. */
export interface Places {
  count: number;
  pendingUnits: number;
  first: Place | undefined;
  last: Place | undefined;
}

/** What a start took from one key, as far as it is needed to give it back. */
export interface Taken {
  readonly startedUs: number;
  /** The start before; minus Infinity when there was none. */
  readonly previousUs: number;
  /** `UNITS` of the block once it was taken. */
  readonly unitsAfter: number;
  readonly cost: Cost;
  readonly place: Place | undefined;
  /** The quota's period it was counted in; -1 without a quota. */
  readonly period: number;
}

/**
 * Is called with every limit that stands in the way: its kind, the earliest instant at which it might not, and the limit in words, without a time. Absent
 * where nobody wants to know, as for most requests.
 *
 * `awaitedUntilUs`: only an answer can tell when, and it may come at any time; from then on it is no longer waited for. `because`: what was answered or
 * read, where that is the cause.
 */
export type Tell = (limit: LimitKind, atUs: number, words: string, awaitedUntilUs?: number, because?: string) => void;
