import { maxDurationUs } from "../core/rule.js";
import { ceilTimes, decimalPattern, readFraction } from "./fraction.js";
import { bad, good, type Reading, unwrap, wrongType } from "./reading.js";
import { showValue } from "./showValue.js";

/** Which of the two special lengths a field takes. Default: neither. */
export interface DurationBounds {
  /** 0 has a meaning for this field. */
  readonly allowZero?: boolean;
  /** Infinity has a meaning for this field. */
  readonly allowInfinity?: boolean;
}

/** How a duration is written as text, as the source of a regular expression. */
export const durationPattern = `(${decimalPattern}) ?(ms|s|m|min|h|d)`;

const wholeDuration = new RegExp(`^${durationPattern}$`);

const unitUs: Readonly<Record<string, bigint>> = {
  ms: 1_000n,
  s: 1_000_000n,
  m: 60_000_000n,
  min: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
};

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
  if (typeof value !== "number" && typeof value !== "string")
    return wrongType(`must be ${form}; got ${showValue(value)}`);
  if (value === Number.POSITIVE_INFINITY) {
    return bounds.allowInfinity === true ? good(value) : bad(`must be finite; got ${value}`);
  }
  if (typeof value === "number" && value < 0) return bad(`must not be negative; got ${showValue(value)}`);

  const exactUs = typeof value === "number" ? microseconds(String(value), "ms") : microsecondsOfText(value);
  if (exactUs === undefined) return bad(`must be ${form}; got ${showValue(value)}`);
  if (exactUs === 0n && bounds.allowZero !== true) return bad(`must be longer than 0; got ${showValue(value)}`);
  if (exactUs > BigInt(maxDurationUs)) return bad(`must be at most 100 years; got ${showValue(value)}`);
  return good(Number(exactUs));
}

/** Writes microseconds as a person would: `"2 s"`, `"1.5 s"`, `"5 min"`, `"333.334 ms"`. */
export function formatDuration(us: number): string {
  if (us % 86_400_000_000 === 0 && us > 0) return `${us / 86_400_000_000} d`;
  if (us % 3_600_000_000 === 0 && us > 0) return `${us / 3_600_000_000} h`;
  if (us % 60_000_000 === 0 && us > 0) return `${us / 60_000_000} min`;
  if (us >= 1_000_000 || us === 0) return `${us / 1_000_000} s`;
  return us >= 1_000 ? `${us / 1_000} ms` : `${us} µs`;
}

function microsecondsOfText(text: string): bigint | undefined {
  const match = text.length > 64 ? null : wholeDuration.exec(text);
  return match === null ? undefined : microseconds(match[1], match[2]);
}

function microseconds(decimal: string, unit: string): bigint | undefined {
  const fraction = readFraction(decimal);
  return fraction === undefined ? undefined : ceilTimes(fraction, unitUs[unit]);
}
