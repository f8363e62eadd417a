import { readDuration } from "./duration.js";
import { isFaster, maxUnits, readRate, readRefill, type WrittenRate } from "./rate.js";
import type { Check } from "./shape.js";
import { showValue } from "./showValue.js";
import { fieldPath } from "./validate.js";

/** Names the fields that make a token bucket, which differ between the two file formats. */
export interface BucketFields {
  readonly burst: string;
  /** Takes the rate out of the entry. */
  readonly rateOf: (entry: Readonly<Record<string, unknown>>) => unknown;
}

/** Finds a bucket that is too large to be counted in whole unit-microseconds. */
export function bucketTooLarge(fields: BucketFields): Check {
  return (entry, path, report) => {
    const burst = entry[fields.burst];
    const rate = readRate(fields.rateOf(entry));
    if (!rate.ok || typeof burst !== "number" || !(burst >= 1) || burst > maxUnits || !readRefill(rate.value).ok)
      return;
    if (!readRefill(rate.value, burst).ok) {
      const max = largestBurst(rate.value, burst);
      report(
        fieldPath(path, fields.burst),
        `must be at most ${max} for whole numbers to count it at the rate ${rate.value.text}; got ${showValue(burst)}`,
      );
    }
  };
}

/** The largest burst below one that is too large, found by halving. */
function largestBurst(rate: WrittenRate, tooLarge: number): number {
  let [low, high] = [1, tooLarge];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (readRefill(rate, middle).ok) low = middle;
    else high = middle;
  }
  return low;
}

/** Finds a lower bound of the adaptive rate that is above the upper one. */
export const adaptiveUpsideDown: Check = ({ min, max }, path, report) => {
  const low = readRate(min);
  const high = readRate(max);
  if (low.ok && high.ok && isFaster(low.value, high.value)) {
    report(fieldPath(path, "min"), `must not be above max ${high.value.text}; got ${low.value.text}`);
  }
};

/** Finds a backoff whose first step is longer than its longest. */
export const backoffUpsideDown: Check = ({ base, max }, path, report) => {
  const first = readDuration(base);
  const longest = readDuration(max);
  if (first.ok && longest.ok && first.value > longest.value) {
    report(fieldPath(path, "base"), `must not be above max ${showValue(max)}; got ${showValue(base)}`);
  }
};
