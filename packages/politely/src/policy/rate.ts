import { windowGrainUs } from "../core/limits/window.js";
import type { WindowRule } from "../core/rule.js";
import { maxDurationUs } from "../core/rule.js";
import {
  ceilTimes,
  decimalPattern,
  type Fraction,
  formatDuration,
  readDuration,
  readFraction,
  reduce,
  unitUs,
} from "./duration.js";
import { bad, good, type Reading } from "./reading.js";
import { showValue } from "./showValue.js";

/** A rate as it was written, exact: `count` units each `perUs` microseconds. */
export interface WrittenRate {
  readonly count: Fraction;
  readonly perUs: number;
  /** The rate as a person would write it: `"60/min"`, `"1/3s"`, `"0.5/s"`. */
  readonly text: string;
}

/** A token bucket's refill: `rateCount` units come back each `ratePerUs`, in lowest terms. */
export interface Refill {
  readonly rateCount: number;
  readonly ratePerUs: number;
}

/** The most units that a burst, a window or a quota may hold. Far above any site's limit, and far below where sums lose digits. */
export const maxUnits = 1_000_000_000_000;

/** How a rate is written as text, as the source of a regular expression. */
export const ratePattern = `(${decimalPattern}) ?/ ?(${decimalPattern})? ?(ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)`;

const wholeRate = new RegExp(`^${ratePattern}$`);
const unknownUnit = new RegExp(`^${decimalPattern} ?/ ?(?:${decimalPattern})? ?[\\p{L}]+$`, "u");
const form = 'a count per time such as "60/min", "1/3s", "0.5/s" or { "count": 5, "per": "1s" }';
const unitForm = "one of the units ms, s (sec, second), min (m, minute), h (hour), d (day)";

/** Reads a rate: text, or an object of `count` and `per`. The time is rounded up to whole microseconds, the count is exact. */
export function readRate(value: unknown): Reading<WrittenRate> {
  if (typeof value === "string") return readRateText(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return bad(`must be ${form}; got ${showValue(value)}`, true);
  }
  const { count, per } = value as { readonly count?: unknown; readonly per?: unknown };
  if (typeof count !== "number") return bad(`must be ${form}; got count ${showValue(count)}`, true);
  const perUs = readDuration(per);
  if (!perUs.ok) return bad(`is not a rate: its per ${perUs.problem}`);
  const units = readFraction(count);
  if (units === undefined || units.top === 0n) {
    return bad(`must have a count that is finite and above 0; got ${showValue(count)}`);
  }
  return good({ count: units, perUs: perUs.value, text: rateText(count, perUs.value) });
}

/**
 * Makes a rate ready for a token bucket that holds `burst` units. A count with decimals becomes a whole one over a longer time: 2.5/s is 5 each 2 s.
 * One that whole numbers cannot count, as a third or π, is rounded down.
 */
export function readRefill(rate: WrittenRate, burst = 1): Reading<Refill> {
  const largest = BigInt(Math.floor(Number.MAX_SAFE_INTEGER / burst));
  let exact = reduce(rate.count.top, rate.count.bottom * BigInt(rate.perUs));
  if (exact.top > Number.MAX_SAFE_INTEGER || exact.bottom > largest) {
    const top = (exact.top * largest) / exact.bottom;
    if (top > Number.MAX_SAFE_INTEGER)
      return bad(`must be at most a million starts per microsecond; got "${rate.text}"`);
    if (top === 0n) return bad(`must not be slower than whole numbers can count; got "${rate.text}"`);
    exact = reduce(top, ceilTimes({ top: exact.bottom, bottom: exact.top }, top));
  }
  return good({ rateCount: Number(exact.top), ratePerUs: Number(exact.bottom) });
}

/** Makes a rate ready for a sliding window: the count is rounded down, and less than one is one in a longer time. 54.9/min is 54 in a minute, 0.5/s is 1 in 2 s. */
export function readWindow(rate: WrittenRate): Reading<WindowRule> {
  const { top, bottom } = rate.count;
  const isWhole = top >= bottom;
  const count = Number(isWhole ? top / bottom : 1n);
  const perUs = isWhole ? rate.perUs : intervalUs(rate);
  if (count > maxUnits) return bad(`must count at most ${maxUnits} in a window; got "${rate.text}"`);
  if (perUs > maxDurationUs) return bad(`must allow at least one start in 100 years; got "${rate.text}"`);
  return good({ count, perUs, grainUs: windowGrainUs(count, perUs) });
}

/** The mean time between two starts at a rate, rounded up. */
export function intervalUs({ count, perUs }: WrittenRate): number {
  return Number(ceilTimes({ top: count.bottom, bottom: count.top }, BigInt(perUs)));
}

/** Tells whether `first` allows more than `second` in the long run. */
export function isFaster(first: WrittenRate, second: WrittenRate): boolean {
  const [one, other] = [first.count.top * second.count.bottom, second.count.top * first.count.bottom];
  return one * BigInt(second.perUs) > other * BigInt(first.perUs);
}

function readRateText(text: string): Reading<WrittenRate> {
  const [, decimal = "", amount = "1", unit = ""] = (text.length <= 64 && wholeRate.exec(text)) || [];
  const [count, times] = [readFraction(decimal), readFraction(amount)];
  if (count === undefined || times === undefined) {
    const rule = text.length <= 64 && unknownUnit.test(text) ? `have ${unitForm} after the slash` : `be ${form}`;
    return bad(`must ${rule}; got ${showValue(text)}`);
  }
  const perUs = Number(ceilTimes(times, unitUs[unit === "ms" ? unit : unit[0]]));
  if (count.top === 0n) return bad(`must have a count above 0; got ${showValue(text)}`);
  if (perUs === 0) return bad(`must have a time longer than 0; got ${showValue(text)}`);
  if (perUs > maxDurationUs) return bad(`must have a time of at most 100 years; got ${showValue(text)}`);
  return good({ count, perUs, text: rateText(decimal, perUs) });
}

/** One of a unit is the unit alone: `"5/s"`, `"5/min"`, `"5/h"`, `"5/day"`. */
function rateText(count: string | number, perUs: number): string {
  const [amount, unit] = formatDuration(perUs).split(" ");
  const one = unit === "d" ? "day" : unit;
  return `${count}/${amount === "1" ? one : amount + unit}`;
}
