import type { Slab } from "./slab.js";

/** Counts kept per host, as offsets in 8-byte words of the statistics of a row. */
const GRANTED = 0;
const WAITED_US = 1;
const FIRST_US = 2;
/** Counts kept in half a word each, as offsets in 4-byte words. The first stands before the others, where a row has half a word left. */
const DELAYED = -1;
const CANCELLED = 6;
const REFUSED = 7;
const EXPIRED = 8;
const THROTTLED = 9;
const WORDS = 5;

/** A wait longer than this makes a request a delayed one. */
const DELAYED_OVER_US = 10_000;

/** The counts of one host, or of many added up. */
export interface Counts {
  granted: number;
  waitedUs: number;
  firstUs: number;
  delayed: number;
  cancelled: number;
  refused: number;
  expired: number;
  lapsed: number;
  throttled: number;
  /** With a store none: what the engine of one process carries over a reset. */
  carried: number;
}

/** Counts of nothing. */
export function noCounts(): Counts {
  return {
    granted: 0,
    waitedUs: 0,
    firstUs: 0,
    delayed: 0,
    cancelled: 0,
    refused: 0,
    expired: 0,
    lapsed: 0,
    throttled: 0,
    carried: 0,
  };
}

/** A count that goes up by itself, and its place in a row. */
const PLACES = {
  delayed: DELAYED,
  cancelled: CANCELLED,
  refused: REFUSED,
  expired: EXPIRED,
  throttled: THROTTLED,
} as const;

/**
 * Counts what happened, per row while statistics are kept there, else in the folded counts.
 *
 * Never decides anything. How many asked, and how many were released, is not counted but follows from the rest and from who
 * waits and is in flight, which saves room in every row and work at every grant.
 */
export class Books {
  /** Hosts no longer kept, added up. */
  readonly folded = noCounts();
  foldedHosts = 0;
  /** The last start of rows whose pace was reset, which no longer say so themselves. */
  readonly #lastUs = new Map<number, number>();
  /** Permits that were never released, of the few rows that have had any. */
  readonly #lapsed = new Map<number, number>();

  constructor(readonly slab: Slab) {
    slab.onRelease = (slot) => this.#forget(slot);
  }

  /** Granted without a wait, at a row whose words are at hand. */
  grantedAtOnce(words: Float64Array, word: number, nowUs: number): void {
    const { statsAt } = this.slab;
    if (statsAt < 0) {
      this.folded.granted += 1;
      return;
    }
    const at = word + statsAt;
    const granted = words[at + GRANTED];
    if (granted === 0) words[at + FIRST_US] = nowUs;
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
    // One that was recorded may have been before those that are counted.
    if (words[at + GRANTED] === 0 || startedUs < words[at + FIRST_US]) words[at + FIRST_US] = startedUs;
    words[at + GRANTED] += 1;
    words[at + WAITED_US] += waitedUs;
    if (isDelayed) halves[2 * at + DELAYED] += 1;
  }

  count(slot: number, what: keyof typeof PLACES | "lapsed", times = 1): void {
    const at = this.#at(slot);
    if (at < 0) this.folded[what] += times;
    else if (what === "lapsed") this.#lapsed.set(slot, (this.#lapsed.get(slot) ?? 0) + times);
    else this.slab.chunkOf(slot).halves[2 * at + PLACES[what]] += times;
  }

  /** A copy of a row's counts; undefined when none are kept. */
  read(slot: number): Counts | undefined {
    const at = this.#at(slot);
    if (at < 0) return undefined;
    const { words, halves } = this.slab.chunkOf(slot);
    return {
      granted: words[at + GRANTED],
      waitedUs: words[at + WAITED_US],
      firstUs: words[at + FIRST_US],
      delayed: halves[2 * at + DELAYED],
      cancelled: halves[2 * at + CANCELLED],
      refused: halves[2 * at + REFUSED],
      expired: halves[2 * at + EXPIRED],
      lapsed: this.#lapsed.get(slot) ?? 0,
      throttled: halves[2 * at + THROTTLED],
      carried: 0,
    };
  }

  /** Adds a row's counts to the folded ones, before the row goes. */
  fold(slot: number): void {
    this.foldedHosts += 1;
    const counts = this.read(slot);
    if (counts === undefined) return;
    for (const name of Object.keys(PLACES) as (keyof typeof PLACES)[]) this.folded[name] += counts[name];
    this.folded.lapsed += counts.lapsed;
    this.folded.granted += counts.granted;
    this.folded.waitedUs += counts.waitedUs;
  }

  /** Remembers when a row's last start was, before the row forgets it. Nothing where no counts are kept. */
  keepLast(slot: number, lastUs: number): void {
    if (this.#at(slot) >= 0 && lastUs > this.lastUs(slot)) this.#lastUs.set(slot, lastUs);
  }

  /** The last start that was kept so; -Infinity when none was. */
  lastUs(slot: number): number {
    return this.#lastUs.get(slot) ?? Number.NEGATIVE_INFINITY;
  }

  /** Forgets what is kept beside a row. */
  #forget(slot: number): void {
    this.#lastUs.delete(slot);
    this.#lapsed.delete(slot);
  }

  /** Whether a row has counted nothing yet. */
  isBlank(slot: number): boolean {
    const at = this.#at(slot);
    if (at < 0) return true;
    const { words, halves } = this.slab.chunkOf(slot);
    if (halves[2 * at + DELAYED] !== 0 || this.#lapsed.has(slot)) return false;
    return words.subarray(at, at + WORDS).every((word) => word === 0);
  }

  /** Sets a row's counts to what a host with `open` permits in flight must have. */
  clear(slot: number, open: number, nowUs: number): void {
    const at = this.#at(slot);
    if (at < 0) return;
    this.#forget(slot);
    const { words, halves } = this.slab.chunkOf(slot);
    halves[2 * at + DELAYED] = 0;
    words.fill(0, at, at + WORDS);
    words[at + GRANTED] = open;
    words[at + FIRST_US] = open === 0 ? 0 : nowUs;
  }

  /** Begins the folded counts anew, with `open` permits in flight that are counted there. */
  clearFolded(open: number): void {
    Object.assign(this.folded, noCounts(), { granted: open });
    this.foldedHosts = 0;
  }

  #at(slot: number): number {
    const { statsAt } = this.slab;
    return statsAt < 0 ? -1 : this.slab.wordOf(slot) + statsAt;
  }
}
