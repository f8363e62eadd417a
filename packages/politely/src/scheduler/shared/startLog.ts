import type { Units } from "../../shared/operation.js";

/** Groups that one log has at most, and however many logs there are. */
const GROUPS_MOST = 256;
const GROUPS_LEAST = 8;
/** Groups of all logs of a kind, at most, while each has more than the least: 24 MB where every start costs one unit. */
const GROUPS_ALL = 1_000_000;
/** Where there are too many, starts are put together that are closer to one another than this part of their age; a larger part where that is not enough. */
const AGE_PART = 256;
const PART_STEP = 1.25;
/** What is younger than this counts as this old then. */
const AGE_LEAST_US = 1_000;
/** Numbers of a group: the instants of its first and of its last start, and how many there are; */
const HEAD = 3;
/** then, unless every start cost one unit of everything, the units of each key: rate, window, quota. */
const UNITS = 3;

/** Some starts that count as of one instant, on this process's clock. */
export interface StartGroup {
  /** The instant of the first of them. */
  readonly fromUs: number;
  /** The instant of the last of them, at which all are counted. */
  readonly atUs: number;
  readonly count: number;
  /** What they took together, for each key. */
  readonly units: readonly Units[];
}

/** How many groups each of so many logs may have, so that all of them stay small. */
export function groupsFor(logs: number): number {
  return Math.max(GROUPS_LEAST, Math.min(GROUPS_MOST, Math.floor(GROUPS_ALL / Math.max(1, logs))));
}

/**
 * Remembers any number of starts in bounded memory: in groups of 24 bytes each, and 24 more for each key once a start cost something else than one unit.
 *
 * No start is dropped, and none counts as of an earlier instant than its own, so nothing is forgiven. Where there are too many to
 * tell apart, a start counts as of a later one; by the less the younger it is: with 256 groups by at most an eighth of its age.
 */
export class StartLog {
  /** All groups, the oldest first. */
  #numbers: number[] = [];
  /** Every start so far took one unit of everything: only their number is kept. */
  #isPlain = true;
  #part = AGE_PART;
  /** With so many groups it is time to trim. */
  #trimAt = GROUPS_LEAST;

  constructor(readonly keyCount: number) {}

  /** How many groups there are. */
  get size(): number {
    return this.#numbers.length / this.#width;
  }

  /** The instant of the newest start. */
  get lastUs(): number {
    return this.size === 0 ? Number.NEGATIVE_INFINITY : this.#numbers[this.#numbers.length - this.#width + 1];
  }

  get groups(): StartGroup[] {
    return Array.from({ length: this.size }, (_, index) => this.#group(index * this.#width));
  }

  get #width(): number {
    return this.#isPlain ? HEAD : HEAD + UNITS * this.keyCount;
  }

  /**
   * Adds starts, and what they took together at each key; undefined: one unit of everything each. Those before the newest count as of that, as in the log of a window.
   *
   * Returns whether it is time to trim.
   */
  add(startedUs: number, count: number, units?: readonly Units[]): boolean {
    if (units !== undefined && this.#isPlain) this.#unfold();
    const { lastUs } = this;
    const atUs = Math.max(lastUs, startedUs);
    this.#numbers.push(startedUs, atUs, count);
    if (!this.#isPlain) {
      for (let key = 0; key < this.keyCount; key++) {
        const { rate, window, quota } = units?.[key] ?? { rate: count, window: count, quota: count };
        this.#numbers.push(rate, window, quota);
      }
    }
    if (atUs === lastUs) {
      const from = this.#numbers.length - this.#width;
      this.#merge(from, from - this.#width);
      this.#numbers.length = from;
    }
    return this.size >= this.#trimAt;
  }

  /** Forgets what was before an instant, but never the newest group, and puts starts together until there are few enough groups. */
  trim(beforeUs: number, most: number): void {
    const width = this.#width;
    let first = 0;
    while (first < this.#numbers.length - width && this.#numbers[first + 1] < beforeUs) first += width;
    // A copy has no room to spare.
    if (first > 0) this.#numbers = this.#numbers.slice(first);
    // What was enough the last time, or a little less.
    this.#part = Math.min(AGE_PART, this.#part * PART_STEP);
    for (; this.size > most * 0.75; this.#part /= PART_STEP) this.#coarsen();
    this.#trimAt = Math.max(GROUPS_LEAST, Math.min(most, 2 * this.size));
  }

  #coarsen(): void {
    const numbers = this.#numbers;
    const width = this.#width;
    const nowUs = this.lastUs;
    // Where the group begins that others are put into.
    let into = 0;
    for (let from = width; from < numbers.length; from += width) {
      const atUs = numbers[from + 1];
      const isNear = (atUs - numbers[into]) * this.#part <= Math.max(AGE_LEAST_US, nowUs - atUs);
      if (isNear) this.#merge(from, into);
      else {
        into += width;
        for (let index = 0; index < width; index++) numbers[into + index] = numbers[from + index];
      }
    }
    if (into + width < numbers.length) this.#numbers = numbers.slice(0, into + width);
  }

  /** Adds the group that begins at `from` to the one before it that begins at `into`. */
  #merge(from: number, into: number): void {
    const numbers = this.#numbers;
    numbers[into + 1] = numbers[from + 1];
    for (let index = HEAD - 1; index < this.#width; index++) numbers[into + index] += numbers[from + index];
  }

  /** Writes out what was only a number of starts. */
  #unfold(): void {
    const { groups } = this;
    this.#isPlain = false;
    this.#numbers = groups.flatMap(({ fromUs, atUs, count, units }) => [
      fromUs,
      atUs,
      count,
      ...units.flatMap(({ rate, window, quota }) => [rate, window, quota]),
    ]);
  }

  #group(at: number): StartGroup {
    const numbers = this.#numbers;
    const count = numbers[at + 2];
    const units = Array.from({ length: this.keyCount }, (_, key): Units => {
      if (this.#isPlain) return { rate: count, window: count, quota: count };
      const from = at + HEAD + UNITS * key;
      return { rate: numbers[from], window: numbers[from + 1], quota: numbers[from + 2] };
    });
    return { fromUs: numbers[at], atUs: numbers[at + 1], count, units };
  }
}
