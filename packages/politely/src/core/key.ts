import type { LimitKind } from "../observe/types.js";
import type { AdaptiveState } from "./adaptive.js";
import type { Headroom } from "./headroom.js";
import type { Incident } from "./incident.js";

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
  /** Where the key's log begins; 0 where it has none. */
  LOG: 8,
  /** Units ever taken, modulo 2^32, less those given back by the newest start. */
  UNITS: 9,
} as const;

/** One key, as the limits see it: its block, and on demand what few keys have. */
export interface Key {
  readonly words: Float64Array;
  readonly halves: Uint32Array;
  /** The block's first word; its first 4-byte word is at twice that. */
  readonly at: number;
  /** What few keys have; undefined for most. */
  readonly rest: Rest | undefined;
  /** Where logs lie. */
  readonly logs: LogSpace;
  /** The wall clock, and what it says of calendars. */
  readonly calendar: Calendars;
  /** Makes the rest where there is none. */
  needRest(): Rest;
}

/** Where logs lie, in pieces of one block of numbers. */
export interface LogSpace {
  /** Replaced by a larger block when `allocate` needs one: read it again after that. */
  memory: Float64Array;
  /** A piece of so many words, full of zeros. Never 0. */
  allocate(words: number): number;
  release(at: number, words: number): void;
}

/** The calendar that quotas go by. */
export interface Calendars {
  wallMs(): number;
  /** The period of a calendar that holds `wallMs`; it only grows. */
  periodAt(calendar: Calendar, wallMs: number): Period;
  periodNumber(calendar: Calendar, index: number): Period;
}

/** How a calendar is cut into periods. */
export interface Calendar {
  readonly per: "hour" | "day" | "month";
  readonly timeZone: string;
}

/** One period: its number, which grows by one each time, and when on the wall clock it begins and ends. */
export interface Period {
  readonly index: number;
  readonly startsAtMs: number;
  readonly endsAtMs: number;
}

/** What few keys have, and most only for a while. */
export class Rest {
  /** Starts in flight, where a limit must know each of them. */
  places: Places | undefined = undefined;
  /** The newest answer, from which gaps run with `countFrom: "answer"`. */
  answeredUs = Number.NEGATIVE_INFINITY;
  /** What was spent of the quota in its period. */
  quotaPeriod = 0;
  quotaUsed = 0;
  /** The rate that a debt is measured in while the rule has none. */
  measure: Bucket | undefined = undefined;
  /** Bad answers, and the permit that goes first after the hold. */
  incident: Incident | undefined = undefined;
  probe: object | undefined = undefined;
  /** Held by a person until then. */
  pausedUntilUs = Number.NEGATIVE_INFINITY;
  /** What the site's headers, its robots.txt and its answers ask for on top of the rule. */
  headers: (Slowdown & { readonly headroom: Headroom }) | undefined = undefined;
  robots: Slowdown | undefined = undefined;
  adaptive: Slowdown | undefined = undefined;
  /** What answers have taught where a rule is adaptive, and why it was last made slower. */
  learned: { readonly state: AdaptiveState; readonly because: string } | undefined = undefined;
  /** A `reset`: what starts up to here took can no longer be given back. */
  cut: Cut | undefined = undefined;
  /** Starts returned unused that were not the newest, by `unitsAfter`: once the newer ones are returned as well, they never were. */
  returned: Map<number, Returned> | undefined = undefined;
  /** Statistics: permits never released and the last start that counted as lost, starts counted before a reset, the last start before one. */
  lapsed = 0;
  lapsedUntilUs = Number.NEGATIVE_INFINITY;
  carried = 0;
  lastUs = Number.NEGATIVE_INFINITY;
  wasReset = false;
}

/** The numbers of a bucket: `rateCount` units come back each `ratePerUs`, up to `burst`. */
export interface Bucket {
  readonly rateCount: number;
  readonly ratePerUs: number;
  readonly burst: number;
}

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

/** Where `reset` has cut the ties of earlier starts. */
export interface Cut {
  readonly atUs: number;
  readonly units: number;
  /** Quotas were forgotten, too. */
  readonly isWhole: boolean;
}

/** A start in flight that holds a place. */
export interface Place {
  readonly startedUs: number;
  /** Units that enter the windows at the answer; 0 once they are in. */
  pendingUnits: number;
  isLive: boolean;
  isLapsed: boolean;
  /** Whose it is, for whoever is told that it lapsed. */
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

/** Starts that followed one another and were returned unused: the start before the first of them, and their units. */
export interface Returned {
  readonly previousUs: number;
  readonly units: number;
}

/** One limit that does not allow a start now. */
export interface Obstacle {
  readonly limit: LimitKind;
  /** The earliest instant at which it could; where an answer is waited for, possibly now. */
  readonly atUs: number;
  /** Only an answer can tell when. It may come at any time; `latestUs` is when it is no longer waited for. */
  readonly isAwaited: boolean;
  readonly latestUs: number;
  /** The limit in words, without a time. */
  readonly words: string;
  /** What was answered or read, where that is the cause. */
  readonly because?: string | undefined;
}

/** Hears of every limit that stands in the way. Absent where nobody wants to know, as on the way of most requests. */
export type Tell = (obstacle: Obstacle) => void;
