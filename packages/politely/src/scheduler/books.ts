import type { Slab } from "./slab.js";

/** Counts kept per host, as offsets in 8-byte words of the statistics of a row. */
export const ASKED = 0;
export const GRANTED = 1;
export const RELEASED = 2;
export const WAITED_US = 3;
export const FIRST_US = 4;
/** Counts kept in half a word each, as offsets in 4-byte words. */
export const DELAYED = 10;
export const CANCELLED = 11;
export const REFUSED = 12;
export const EXPIRED = 13;
export const LAPSED = 14;
export const THROTTLED = 15;

/** A wait longer than this makes a request a delayed one. */
const DELAYED_OVER_US = 10_000;

/** The counts of one host, or of many added up. */
export interface Counts {
  asked: number;
  granted: number;
  released: number;
  waitedUs: number;
  firstUs: number;
  delayed: number;
  cancelled: number;
  refused: number;
  expired: number;
  lapsed: number;
  throttled: number;
}

/** Counts of nothing. */
export function noCounts(): Counts {
  return {
    asked: 0,
    granted: 0,
    released: 0,
    waitedUs: 0,
    firstUs: 0,
    delayed: 0,
    cancelled: 0,
    refused: 0,
    expired: 0,
    lapsed: 0,
    throttled: 0,
  };
}

/** A count that goes up by itself, and its place in a row. */
const PLACES = {
  delayed: DELAYED,
  cancelled: CANCELLED,
  refused: REFUSED,
  expired: EXPIRED,
  lapsed: LAPSED,
  throttled: THROTTLED,
} as const;

/**
 * Counts what happened, per row while statistics are kept there, else in the folded counts.
 *
 * Never decides anything.
 */
export class Books {
  /** Hosts no longer kept, added up. */
  readonly folded = noCounts();
  foldedHosts = 0;

  constructor(readonly slab: Slab) {}

  asked(slot: number): void {
    const at = this.#at(slot);
    if (at < 0) this.folded.asked += 1;
    else this.slab.chunkOf(slot).words[at + ASKED] += 1;
  }

  /** Asked for and granted in one breath, at a row whose words are at hand. */
  grantedAtOnce(words: Float64Array, word: number, nowUs: number): void {
    const { statsAt } = this.slab;
    if (statsAt < 0) {
      this.folded.asked += 1;
      this.folded.granted += 1;
      return;
    }
    const at = word + statsAt;
    const granted = words[at + GRANTED];
    if (granted === 0) words[at + FIRST_US] = nowUs;
    words[at + ASKED] += 1;
    words[at + GRANTED] = granted + 1;
  }

  granted(slot: number, startedUs: number, waitedUs: number): void {
    const at = this.#at(slot);
    const isDelayed = waitedUs > DELAYED_OVER_US;
    if (at < 0) {
      this.folded.granted += 1;
      this.folded.waitedUs += waitedUs;
      if (isDelayed) this.folded.delayed += 1;
      return;
    }
    const { words, halves } = this.slab.chunkOf(slot);
    if (words[at + GRANTED] === 0) words[at + FIRST_US] = startedUs;
    words[at + GRANTED] += 1;
    words[at + WAITED_US] += waitedUs;
    if (isDelayed) halves[2 * at + DELAYED] += 1;
  }

  released(slot: number): void {
    const at = this.#at(slot);
    if (at < 0) this.folded.released += 1;
    else this.slab.chunkOf(slot).words[at + RELEASED] += 1;
  }

  count(slot: number, what: keyof typeof PLACES, times = 1): void {
    const at = this.#at(slot);
    if (at < 0) this.folded[what] += times;
    else this.slab.chunkOf(slot).halves[2 * at + PLACES[what]] += times;
  }

  /** A copy of a row's counts; undefined when none are kept. */
  read(slot: number): Counts | undefined {
    const at = this.#at(slot);
    if (at < 0) return undefined;
    const { words, halves } = this.slab.chunkOf(slot);
    return {
      asked: words[at + ASKED],
      granted: words[at + GRANTED],
      released: words[at + RELEASED],
      waitedUs: words[at + WAITED_US],
      firstUs: words[at + FIRST_US],
      delayed: halves[2 * at + DELAYED],
      cancelled: halves[2 * at + CANCELLED],
      refused: halves[2 * at + REFUSED],
      expired: halves[2 * at + EXPIRED],
      lapsed: halves[2 * at + LAPSED],
      throttled: halves[2 * at + THROTTLED],
    };
  }

  /** Adds a row's counts to the folded ones, before the row goes. */
  fold(slot: number): void {
    this.foldedHosts += 1;
    const counts = this.read(slot);
    if (counts === undefined) return;
    for (const name of Object.keys(PLACES) as (keyof typeof PLACES)[]) this.folded[name] += counts[name];
    this.folded.asked += counts.asked;
    this.folded.granted += counts.granted;
    this.folded.released += counts.released;
    this.folded.waitedUs += counts.waitedUs;
  }

  /** Sets a row's counts to what a host with `open` permits in flight and `waiting` requests must have. */
  clear(slot: number, open: number, waiting: number): void {
    const at = this.#at(slot);
    if (at < 0) return;
    const { words } = this.slab.chunkOf(slot);
    words.fill(0, at, at + 8);
    words[at + ASKED] = open + waiting;
    words[at + GRANTED] = open;
  }

  clearFolded(): void {
    Object.assign(this.folded, noCounts());
    this.foldedHosts = 0;
  }

  #at(slot: number): number {
    const { statsAt } = this.slab;
    return statsAt < 0 ? -1 : this.slab.wordOf(slot) + statsAt;
  }
}
