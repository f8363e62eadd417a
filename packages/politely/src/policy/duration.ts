import { maxDurationUs } from "../core/rule.js";
import { bad, good, type Reading, unwrap } from "./reading.js";
import { showValue } from "./showValue.js";

/** A number that is not negative, exact, in lowest terms: `top / bottom`. */
export interface Fraction {
  readonly top: bigint;
  readonly bottom: bigint;
}

/** Which of the two special lengths a field takes. Default: neither. */
export interface DurationBounds {
  /** 0 has a meaning for this field. */
  readonly allowZero?: boolean;
  /** Infinity has a meaning for this field. */
  readonly allowInfinity?: boolean;
}

/** How a decimal number is written, as the source of a regular expression: `5`, `0.5`, `.5`, `2e3`. No sign. */
export const decimalPattern = "(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:e[+-]?\\d{1,3})?";
/** How a duration is written as text, as the source of a regular expression. */
export const durationPattern = `(${decimalPattern}) ?(ms|s|m|min|h|d)`;
/** Microseconds in the units of durations and rates. */
export const unitUs: Readonly<Record<string, bigint>> = {
  ms: 1_000n,
  s: 1_000_000n,
  m: 60_000_000n,
  min: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
};

const wholeDecimal = new RegExp(`^${decimalPattern}$`);
const wholeDuration = new RegExp(`^${durationPattern}$`);
const form = 'a length of time: milliseconds as a number, or text with a unit (ms, s, m, min, h, d) such as "1.5s"';

/**
 * Turns the duration of the field `name` into whole microseconds, rounded up. Decimals are exact: `"0.3s"` is 300,000 and not one more.
 *
 * Throws `TypeError` for a wrong type and `RangeError` for a wrong value, naming field, rule and value.
 * Infinity, where allowed, stays Infinity.
 */
export function durationUs(value: unknown, name: string, bounds: DurationBounds = {}): number {
  // Whole milliseconds are what nearly every caller passes, and need no exact decimals.
  if (Number.isInteger(value) && (value as number) > 0 && (value as number) <= maxDurationUs / 1_000) {
    return (value as number) * 1_000;
  }
  return unwrap(readDuration(value, bounds), name);
}

/** Reads a duration as whole microseconds, rounded up. */
export function readDuration(value: unknown, bounds: DurationBounds = {}): Reading<number> {
  const problem = (rule: string): Reading<never> => bad(`must ${rule}; got ${showValue(value)}`);
  if (typeof value !== "number" && typeof value !== "string")
    return bad(`must be ${form}; got ${showValue(value)}`, true);
  if (value === Number.POSITIVE_INFINITY) return bounds.allowInfinity === true ? good(value) : problem("be finite");
  if (typeof value === "number" && value < 0) return problem("not be negative");

  const text = typeof value === "number" ? `${value}ms` : value;
  const [, decimal = "", unit = ""] = (text.length <= 64 && wholeDuration.exec(text)) || [];
  const fraction = readFraction(decimal);
  if (fraction === undefined) return problem(`be ${form}`);
  const exactUs = ceilTimes(fraction, unitUs[unit]);
  if (exactUs === 0n && bounds.allowZero !== true) return problem("be longer than 0");
  return exactUs > maxDurationUs ? problem("be at most 100 years") : good(Number(exactUs));
}

/** Writes microseconds as a person would: `"2 s"`, `"1.5 s"`, `"5 min"`, `"333.334 ms"`. */
export function formatDuration(us: number): string {
  for (const unit of us > 0 ? ["d", "h", "min"] : []) {
    if (us % Number(unitUs[unit]) === 0) return `${us / Number(unitUs[unit])} ${unit}`;
  }
  if (us >= 1_000_000 || us === 0) return `${us / 1_000_000} s`;
  return us >= 1_000 ? `${us / 1_000} ms` : `${us} µs`;
}

/**
 * Reads a decimal number without rounding; undefined when it is not one.
 *
 * A JavaScript number goes through the text it prints as: 0.1 is one tenth here, not the binary number next to it.
 */
export function readFraction(value: string | number): Fraction | undefined {
  const text = String(value);
  if (text.length > 64 || !wholeDecimal.test(text)) return undefined;
  const [mantissa, exponent = "0"] = text.split("e");
  const [whole, decimals = ""] = mantissa.split(".");
  const shift = BigInt(exponent) - BigInt(decimals.length);
  const digits = BigInt(whole + decimals);
  return shift >= 0n ? { top: digits * 10n ** shift, bottom: 1n } : reduce(digits, 10n ** -shift);
}

/** Makes `top / bottom` a fraction in lowest terms. `bottom` must be above 0. */
export function reduce(top: bigint, bottom: bigint): Fraction {
  let [divisor, rest] = [bottom, top];
  while (rest > 0n) [divisor, rest] = [rest, divisor % rest];
  return { top: top / divisor, bottom: bottom / divisor };
}

/** The smallest whole number that is not below the fraction times `factor`. */
export function ceilTimes({ top, bottom }: Fraction, factor: bigint): bigint {
  return (top * factor + bottom - 1n) / bottom;
}
