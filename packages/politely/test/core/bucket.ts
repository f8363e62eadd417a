import { WallCalendar } from "../../src/core/calendar.js";
import { type Key, NOBODY, ONE, Rest, ROW } from "../../src/core/key.js";
import { owedAt, rateGiveBack, rateReadyAt, rateTake } from "../../src/core/limits/rate.js";
import type { Rule } from "../../src/core/rule.js";
import { compileRule } from "../../src/policy/compileRule.js";

/** A bucket in whole numbers: `count` units come back each `perUs`. */
export interface BucketNumbers {
  readonly count: number;
  readonly perUs: number;
  readonly burst: number;
}

/** A start that is still spent, with all that giving it back needs. */
export interface SpentStart {
  readonly atUs: number;
  cost: number;
  /** Units ever taken, this start included. */
  readonly unitsAfter: number;
}

/** One bucket through the functions of the core, as a row of the engine keeps it. */
export class Bucket {
  readonly starts: SpentStart[] = [];
  readonly #key: Key;
  readonly #rule;
  #units = 0;

  constructor(readonly numbers: BucketNumbers) {
    const words = new Float64Array(5);
    words[ROW.SEEN_US] = Number.NEGATIVE_INFINITY;
    const rest = new Rest();
    const calendar = new WallCalendar(() => 0);
    this.#key = { words, halves: new Uint32Array(words.buffer), at: 0, rest, calendar, needRest: () => rest };
    const { count, perUs, burst } = numbers;
    this.#rule = { ...compileRule({}), rateCount: count, ratePerUs: perUs, burst };
  }

  get owed(): number {
    return this.#key.words[ROW.OWED];
  }

  get seenUs(): number {
    return this.#key.words[ROW.SEEN_US];
  }

  /** The instant from which `cost` units fit; at or before `nowUs`: now. */
  readyAt(cost: number, nowUs = Number.NEGATIVE_INFINITY): number {
    return rateReadyAt(this.#key, this.#rule, { ...ONE, rate: cost }, nowUs, NOBODY);
  }

  owedAt(nowUs: number): number {
    return owedAt(this.numbers.count, this.owed, this.seenUs, nowUs);
  }

  take(nowUs: number, cost: number): SpentStart {
    rateTake(this.#key, this.#rule, cost, nowUs);
    this.#units += cost;
    const start = { atUs: this.seenUs, cost, unitsAfter: this.#units };
    this.starts.push(start);
    return start;
  }

  /** Takes `units` back from a start. */
  giveBack(start: SpentStart, units: number, nowUs: number): void {
    rateGiveBack(this.#key, this.#rule, units, this.#units - start.unitsAfter, nowUs);
    start.cost -= units;
  }
}

/** A key with a debt, and the rule of its bucket: one unit owes one. */
function debtOf(
  owed: number,
  seenUs: number,
  count: number,
  burst: number,
): { readonly key: Key; readonly rule: Rule } {
  const words = new Float64Array(5);
  words[ROW.OWED] = owed;
  words[ROW.SEEN_US] = seenUs;
  const rest = new Rest();
  const calendar = new WallCalendar(() => 0);
  const key = { words, halves: new Uint32Array(words.buffer), at: 0, rest, calendar, needRest: () => rest };
  return { key, rule: { ...compileRule({}), rateCount: count, ratePerUs: 1, burst } };
}

/** When a debt that was noted at `seenUs` leaves room for one unit more than `room`. */
export function readyOf(count: number, owed: number, seenUs: number, room: number): number {
  const { key, rule } = debtOf(owed, seenUs, count, room + 1);
  return rateReadyAt(key, rule, ONE, Number.NEGATIVE_INFINITY, NOBODY);
}

/** What is left of a debt when some of it comes back, and so much was spent after that. */
export function owedWithout(owed: number, taken: number, later: number): number {
  const { key, rule } = debtOf(owed, 0, 1, 1);
  rateGiveBack(key, rule, taken, later, 0);
  return key.words[ROW.OWED];
}
