import { ROW } from "../core/key.js";
import type { Slab } from "./slab.js";

/** Counts kept per host, as offsets in 8-byte words of the statistics of a row. */
const GRANTED = 0;
const WAITED_US = 1;
const FIRST_US = 2;
/** Counts kept in half a word each, as offsets in 4-byte words. The first stands before the others, where a row has half a word left. */
const HALVES = { delayed: -1, cancelled: 6, refused: 7, expired: 8, throttled: 9 } as const;
const HALF_NAMES = Object.keys(HALVES) as (keyof typeof HALVES)[];
const WORDS = 5;

/** A wait longer than this makes a request a delayed one. */
const DELAYED_OVER_US = 10_000;
const { LAST_US } = ROW;

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
  /** Of the granted, those from before the statistics were reset that were in flight then. */
  carried: number;
}

/** Counts of nothing. */
export function noCounts(): Counts {
  const none = { granted: 0, waitedUs: 0, firstUs: 0, delayed: 0, cancelled: 0, refused: 0, expired: 0 };
  return { ...none, lapsed: 0, throttled: 0, carried: 0 };
}

/**
 * Counts what happened, per row while statistics are kept there, else in the folded counts. Never decides anything.
 *
 * How many asked, and how many were released, is not counted but follows from the rest and from who waits and is in flight.
 */
export class Books {
  /** Hosts no longer kept, added up. */
  folded = noCounts();
  foldedHosts = 0;
  /** The starts in flight of all hosts together. */
  flying = 0;

  constructor(readonly slab: Slab) {}

  granted(slot: number, startedUs: number, waitedUs: number): void {
    const isDelayed = waitedUs > DELAYED_OVER_US;
    const at = this.#at(slot);
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
    if (isDelayed) halves[2 * at + HALVES.delayed] += 1;
  }

  /** Granted without a wait and in flight, at a row whose words are at hand. */
  grantedAtOnce(words: Float64Array, word: number, nowUs: number): void {
    this.flying += 1;
    const { statsAt } = this.slab;
    if (statsAt < 0) {
      this.folded.granted += 1;
      return;
    }
    const granted = words[word + statsAt];
    if (granted === 0) words[word + statsAt + FIRST_US] = nowUs;
    words[word + statsAt] = granted + 1;
  }

  count(slot: number, what: keyof typeof HALVES): void {
    const at = this.#at(slot);
    if (at < 0) this.folded[what] += 1;
    else this.slab.chunkOf(slot).halves[2 * at + HALVES[what]] += 1;
  }

  lapsed(slot: number, times: number): void {
    if (this.slab.statsAt < 0) this.folded.lapsed += times;
    else this.slab.key(slot).needRest().lapsed += times;
  }

  /** A copy of a row's counts; undefined when none are kept. */
  read(slot: number): Counts | undefined {
    const at = this.#at(slot);
    if (at < 0) return undefined;
    const { words, halves } = this.slab.chunkOf(slot);
    const rest = this.slab.rests.get(slot);
    return {
      granted: words[at + GRANTED],
      waitedUs: words[at + WAITED_US],
      firstUs: words[at + FIRST_US],
      delayed: halves[2 * at + HALVES.delayed],
      cancelled: halves[2 * at + HALVES.cancelled],
      refused: halves[2 * at + HALVES.refused],
      expired: halves[2 * at + HALVES.expired],
      throttled: halves[2 * at + HALVES.throttled],
      lapsed: rest?.lapsed ?? 0,
      carried: rest?.carried ?? 0,
    };
  }

  /** Adds a row's counts to the folded ones, before the row goes. */
  fold(slot: number): void {
    this.foldedHosts += 1;
    this.addTo(this.folded, slot);
  }

  addTo(sum: Counts, slot: number): void {
    const counts = this.read(slot);
    if (counts === undefined) return;
    for (const name of HALF_NAMES) sum[name] += counts[name];
    sum.lapsed += counts.lapsed;
    sum.granted += counts.granted;
    sum.carried += counts.carried;
    sum.waitedUs += counts.waitedUs;
  }

  /** The last start of a row, also when its pace was reset since; minus Infinity when there was none. */
  lastUs(slot: number): number {
    const lastUs = this.slab.chunkOf(slot).words[this.slab.wordOf(slot) + LAST_US];
    return Math.max(lastUs, this.slab.rests.get(slot)?.lastUs ?? Number.NEGATIVE_INFINITY);
  }

  /** Whether a row has counted nothing yet. */
  isBlank(slot: number): boolean {
    const at = this.#at(slot);
    if (at < 0) return true;
    const { words, halves } = this.slab.chunkOf(slot);
    if (halves[2 * at + HALVES.delayed] !== 0) return false;
    const rest = this.slab.rests.get(slot);
    if (rest !== undefined && (rest.lapsed > 0 || rest.wasReset)) return false;
    return words.subarray(at, at + WORDS).every((word) => word === 0);
  }

  /** Sets a row's counts to what a host with `open` permits in flight must have. */
  clear(slot: number, open: number, nowUs: number): void {
    const at = this.#at(slot);
    if (at < 0) return;
    const rest = this.slab.key(slot).needRest();
    rest.lapsed = 0;
    rest.carried = open;
    rest.wasReset = true;
    const { words, halves } = this.slab.chunkOf(slot);
    halves[2 * at + HALVES.delayed] = 0;
    words.fill(0, at, at + WORDS);
    words[at + GRANTED] = open;
    words[at + FIRST_US] = open === 0 ? 0 : nowUs;
  }

  /** Begins the folded counts anew, with `open` permits in flight that are counted there. */
  clearFolded(open: number): void {
    this.folded = { ...noCounts(), granted: open, carried: open };
    this.foldedHosts = 0;
  }

  #at(slot: number): number {
    const { statsAt } = this.slab;
    return statsAt < 0 ? -1 : this.slab.wordOf(slot) + statsAt;
  }
}
