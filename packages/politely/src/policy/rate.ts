import { windowGrainUs } from "../core/limits/window.js";
import type { WindowRule } from "../core/rule.js";
import { maxDurationUs } from "../core/rule.js";
import { formatDuration, readDuration } from "./duration.js";
import { ceilTimes, decimalPattern, type Fraction, readFraction, reduce } from "./fraction.js";
import { bad, good, type Reading, wrongType } from "./reading.js";
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
const unitUsByLetter: Readonly<Record<string, bigint>> = {
  s: 1_000_000n,
  m: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
};
const unknownUnit = new RegExp(`^${decimalPattern} ?/ ?(?:${decimalPattern})? ?[\\p{L}]+$`, "u");
const form = 'a count per time such as "60/min", "1/3s", "0.5/s" or { "count": 5, "per": "1s" }';

const unitForm = "one of the units ms, s (sec, second), min (m, minute), h (hour), d (day)";

/** Reads a rate: text, or an object of `count` and `per`. The time is rounded up to whole microseconds, the count is exact. */
export function readRate(value: unknown): Reading<WrittenRate> {
  if (typeof value === "string") return readRateText(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return wrongType(`must be ${form}; got ${showValue(value)}`);
  }
  const { count, per } = value as { readonly count?: unknown; readonly per?: unknown };
  if (typeof count !== "number") return wrongType(`must be ${form}; got count ${showValue(count)}`);
  const perUs = readDuration(per);
  if (!perUs.ok) return bad(`is not a rate: its per ${perUs.problem}`);
  const units = readFraction(count);
  if (units === undefined || units.top === 0n) {
    return bad(`must have a count that is finite and above 0; got ${showValue(count)}`);
  }
  return good({ count: units, perUs: perUs.value, text: `${count}/${formatPeriod(perUs.value)}` });
}

/**
 * Makes a rate ready for a token bucket that holds `burst` units. A count with decimals becomes a whole one over a longer time: 2.5/s is 5 each 2 s.
 * One that whole numbers cannot count, as a third or π, is rounded down.
 */
export function readRefill(rate: WrittenRate, burst = 1): Reading<Refill> {
  const largest = BigInt(Math.floor(Number.MAX_SAFE_INTEGER / burst));
  const exact = reduce(rate.count.top, rate.count.bottom * BigInt(rate.perUs));
  if (exact.top <= Number.MAX_SAFE_INTEGER && exact.bottom <= largest) return refillOf(exact);
  const top = (exact.top * largest) / exact.bottom;
  if (top > Number.MAX_SAFE_INTEGER) return bad(`must be at most a million starts per microsecond; got "${rate.text}"`);
  if (top === 0n) return bad(`must not be slower than whole numbers can count; got "${rate.text}"`);
  return refillOf(reduce(top, ceilTimes({ top: exact.bottom, bottom: exact.top }, top)));
}

function refillOf({ top, bottom }: Fraction): Reading<Refill> {
  return good({ rateCount: Number(top), ratePerUs: Number(bottom) });
}

/** Makes a rate ready for a sliding window: the count is rounded down, and less than one is one in a longer time. 54.9/min is 54 in a minute, 0.5/s is 1 in 2 s. */
export function readWindow(rate: WrittenRate): Reading<WindowRule> {
  const { top, bottom } = rate.count;
  const isWhole = top >= bottom;
  const count = isWhole ? top / bottom : 1n;
  const perUs = isWhole ? BigInt(rate.perUs) : ceilTimes({ top: bottom, bottom: top }, BigInt(rate.perUs));
  if (count > maxUnits) return bad(`must count at most ${maxUnits} in a window; got "${rate.text}"`);
  if (perUs > maxDurationUs) return bad(`must allow at least one start in 100 years; got "${rate.text}"`);
  const grainUs = windowGrainUs(Number(count), Number(perUs));
  return good({ count: Number(count), perUs: Number(perUs), grainUs });
}

/** Tells whether `first` allows more than `second` in the long run. */
export function isFaster(first: WrittenRate, second: WrittenRate): boolean {
  return (
    first.count.top * second.count.bottom * BigInt(second.perUs) >
    second.count.top * first.count.bottom * BigInt(first.perUs)
  );
}

function readRateText(text: string): Reading<WrittenRate> {
  const match = text.length > 64 ? null : wholeRate.exec(text);
  const count = match === null ? undefined : readFraction(match[1]);
  const times = match === null ? undefined : readFraction(match[2] ?? "1");
  if (match === null || count === undefined || times === undefined) {
    const rule = text.length <= 64 && unknownUnit.test(text) ? `have ${unitForm} after the slash` : `be ${form}`;
    return bad(`must ${rule}; got ${showValue(text)}`);
  }
  if (count.top === 0n) return bad(`must have a count above 0; got ${showValue(text)}`);

  const unit = match[3] === "ms" ? 1_000n : unitUsByLetter[match[3][0]];
  const perUs = ceilTimes(times, unit);
  if (perUs === 0n) return bad(`must have a time longer than 0; got ${showValue(text)}`);
  if (perUs > maxDurationUs) return bad(`must have a time of at most 100 years; got ${showValue(text)}`);
  return good({ count, perUs: Number(perUs), text: `${match[1]}/${formatPeriod(Number(perUs))}` });
}

/** Writes the time of a rate: one of a unit is the unit alone, `"s"`, `"min"`, `"h"`, `"day"`. */
function formatPeriod(us: number): string {
  const [amount, unit] = formatDuration(us).split(" ");
  if (amount !== "1") return amount + unit;
  return unit === "d" ? "day" : unit;
}
