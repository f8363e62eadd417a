import type { Slab } from "./slab.js";

/** Counts kept per host, as offsets in 8-byte words of the statistics of a row. */
const GRANTED = 0;
const WAITED_US = 1;
const FIRST_US = 2;
/** Counts of half a word each, as offsets in 4-byte words. The first lies before the others, where a block has half a word left. */
const HALVES = { delayed: -1, cancelled: 6, refused: 7, expired: 8, throttled: 9 } as const;
const HALF_NAMES = Object.keys(HALVES) as (keyof typeof HALVES)[];
const WORDS = 5;

/** A wait longer than this makes a request a delayed one. */
const DELAYED_OVER_US = 10_000;

const NO_COUNTS = {
  granted: 0,
  waitedUs: 0,
  /** The first start; of several hosts it is not known. */
  firstUs: 0,
  delayed: 0,
  cancelled: 0,
  refused: 0,
  expired: 0,
  lapsed: 0,
  throttled: 0,
  /** Of the granted, those that were in flight when the statistics were reset. */
  carried: 0,
};

/** The counts of one host, or of many added up. */
export type Counts = typeof NO_COUNTS;
const NAMES = Object.keys(NO_COUNTS) as (keyof Counts)[];

/**
 * Counts what happened, per row while statistics are kept there, else in the folded counts. Never decides anything.
 *
 * How many asked, and how many were released, is not counted but follows from the rest and from who waits and is in flight.
 */
export class Books {
  /** Hosts no longer kept, added up. */
  folded: Counts = { ...NO_COUNTS };
  foldedHosts = 0;
  /** All hosts together, those with a row included, where rows have counts. */
  all: Counts = { ...NO_COUNTS };
  /** The starts in flight of all hosts together. */
  flying = 0;

  constructor(readonly slab: Slab) {}

  granted(slot: number, startedUs: number, waitedUs: number): void {
    const at = this.#at(slot);
    const delayed = waitedUs > DELAYED_OVER_US ? 1 : 0;
    const sum = at < 0 ? this.folded : this.all;
    sum.granted += 1;
    sum.waitedUs += waitedUs;
    sum.delayed += delayed;
    if (at < 0) return;
    const { words, halves } = this.slab.chunkOf(slot);
    // One that was recorded may have been before those that are counted.
    if (words[at + GRANTED] === 0 || startedUs < words[at + FIRST_US]) words[at + FIRST_US] = startedUs;
    words[at + GRANTED] += 1;
    words[at + WAITED_US] += waitedUs;
    halves[2 * at + HALVES.delayed] += delayed;
  }

  /** Counts one more at a row; a host without one is counted with those folded together. */
  count(slot: number | undefined, what: keyof typeof HALVES): void {
    const at = slot === undefined ? -1 : this.#at(slot);
    this.all[what] += 1;
    if (slot === undefined || at < 0) this.folded[what] += 1;
    else this.slab.chunkOf(slot).halves[2 * at + HALVES[what]] += 1;
  }

  lapsed(slot: number, times: number): void {
    this.flying -= times;
    this.all.lapsed += times;
    if (this.slab.statsAt < 0) this.folded.lapsed += times;
    else {
      const rest = this.slab.key(slot).needRest();
      rest.kept = { carried: rest.kept?.carried ?? 0, lapsed: (rest.kept?.lapsed ?? 0) + times };
    }
  }

  /** A copy of a row's counts; of the folded ones when none are kept. */
  read(slot: number): Counts {
    const at = this.#at(slot);
    if (at < 0) return { ...this.folded };
    const { words, halves } = this.slab.chunkOf(slot);
    const counts = { ...NO_COUNTS, ...this.slab.rests.get(slot)?.kept };
    counts.granted = words[at + GRANTED];
    counts.waitedUs = words[at + WAITED_US];
    counts.firstUs = words[at + FIRST_US];
    for (const name of HALF_NAMES) counts[name] = halves[2 * at + HALVES[name]];
    return counts;
  }

  /** Adds a row's counts to the folded ones, before the row goes. */
  fold(slot: number): void {
    this.foldedHosts += 1;
    if (this.slab.statsAt >= 0) addTo(this.folded, this.read(slot));
  }

  /** Whether a row has counted nothing yet. */
  isBlank(slot: number): boolean {
    const { kept } = this.slab.key(slot).rest ?? {};
    const counts = this.read(slot);
    return this.slab.statsAt < 0 || (kept === undefined && NAMES.every((name) => counts[name] === 0));
  }

  /** Sets a row's counts to what a host with `open` permits in flight must have; `isAlone`: those of no other row. */
  clear(slot: number, open: number, nowUs: number, isAlone: boolean): void {
    const at = this.#at(slot);
    if (at < 0) return;
    if (isAlone) {
      addTo(this.all, this.read(slot), -1);
      addTo(this.all, { ...NO_COUNTS, granted: open, carried: open });
    }
    this.slab.key(slot).needRest().kept = { lapsed: 0, carried: open };
    const { words, halves } = this.slab.chunkOf(slot);
    halves[2 * at + HALVES.delayed] = 0;
    words.fill(0, at, at + WORDS);
    words[at + GRANTED] = open;
    words[at + FIRST_US] = open === 0 ? 0 : nowUs;
  }

  /** Begins the counts of all hosts anew, with `open` permits in flight that are counted in the folded ones. Rows follow one by one. */
  clearFolded(open: number): void {
    this.all = { ...NO_COUNTS, granted: this.flying, carried: this.flying };
    this.folded = { ...NO_COUNTS, granted: open, carried: open };
    this.foldedHosts = 0;
  }

  #at(slot: number): number {
    const { statsAt } = this.slab;
    return statsAt < 0 ? -1 : this.slab.wordOf(slot) + statsAt;
  }
}

/** Adds counts to others, or with -1 takes them away. What is the first start of several is not known. */
export function addTo(sum: Counts, counts: Counts, sign: 1 | -1 = 1): void {
  for (const name of NAMES) if (name !== "firstUs") sum[name] += sign * counts[name];
}
