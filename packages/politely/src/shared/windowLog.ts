import type { WindowRule } from "../core/rule.js";
import {
  WINDOW_HEADING,
  windowAppend,
  windowCapacity,
  windowClear,
  windowCountedAt,
  windowMove,
  windowWords,
} from "./window.js";

// The log of one window as a block of its own. The arithmetic is that of the engine in one process.

/** A log with nothing in it. */
export function emptyLog(): Float64Array {
  return makeLog(1);
}

/** Counts units that started at `startUs`. Returns the log, which is another one when it had to grow. */
export function logStart(log: Float64Array, rule: WindowRule, startUs: number, units: number): Float64Array {
  const countedUs = windowCountedAt(rule, startUs);
  if (windowAppend(log, 0, rule, countedUs, units)) return log;
  const larger = makeLog(2 * windowCapacity(log, 0));
  windowMove(log, 0, larger, 0);
  windowAppend(larger, 0, rule, countedUs, units);
  return larger;
}

/** The starts in a log as pairs of instant and units, the oldest first, without those that were returned. */
export function logPairs(log: Float64Array): number[] {
  const copy = makeLog(windowCapacity(log, 0));
  const kept = windowMove(log, 0, copy, 0);
  return Array.from(copy.subarray(WINDOW_HEADING, WINDOW_HEADING + 2 * kept));
}

/** A log with these pairs in it, as `logPairs` gives them. */
export function logOf(pairs: readonly number[]): Float64Array {
  let capacity = 1;
  while (capacity * 2 < pairs.length) capacity *= 2;
  const log = makeLog(capacity);
  const everything: WindowRule = { count: Number.MAX_SAFE_INTEGER / 4, perUs: 1, grainUs: 1 };
  for (let index = 0; index < pairs.length; index += 2) {
    windowAppend(log, 0, everything, pairs[index], pairs[index + 1]);
  }
  return log;
}

/** The windows of a rule, one after the other. */
export function windowsOf(numbers: readonly number[]): WindowRule[] {
  const windows: WindowRule[] = [];
  for (let index = 0; index < numbers.length; index += 3) {
    windows.push({ count: numbers[index], perUs: numbers[index + 1], grainUs: numbers[index + 2] });
  }
  return windows;
}

function makeLog(capacity: number): Float64Array {
  const log = new Float64Array(windowWords(capacity));
  windowClear(log, 0, capacity);
  return log;
}
