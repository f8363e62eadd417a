import type { Run } from "./spacing.js";
import type { Timeline } from "./timeline.js";

/** A bucket of `burst` units into which `count` come back each `perUs`. */
export interface Bucket {
  readonly count: number;
  readonly perUs: number;
  readonly burst: number;
}

// No greater debt is remembered, so that all numbers stay exact. It can only hide a violation behind one that is greater.
const MOST_OWED = 2 ** 52;

/**
 * The run of starts that exceeds the bucket by most: more than `burst + t * count / per` units in t, whatever their times are.
 *
 * A meter that each start raises and time lowers, read at the last moment each start may have. The run begins where the meter
 * was last empty. Exact for any costs: with starts in order, a bucket has room for the last unit of a heavy start exactly when it
 * has room for all of it. Undefined: every start has room.
 */
export function overflowingRun(
  { length, lo, hi }: Timeline,
  { count, perUs, burst }: Bucket,
  unitsOf: (index: number) => number,
): Run | undefined {
  let owed = 0;
  let first = 0;
  let units = 0;
  let best: Run | undefined;
  let bestExcess = 0;
  for (let index = 0; index < length; index++) {
    if (index > 0) owed = Math.max(0, owed - (lo[index] - lo[index - 1]) * count);
    if (owed === 0) {
      first = index;
      units = 0;
    }
    units += unitsOf(index);
    owed = Math.min(MOST_OWED, owed + unitsOf(index) * perUs);
    // The end of an interval is not part of it: reaching it exactly is too late, which half a unit-microsecond stands for.
    const isExact = lo[index] === hi[index];
    const lateUs = isExact ? 0 : hi[index] + 1 - lo[index];
    const excess = owed - burst * perUs - lateUs * count + (isExact ? 0 : 0.5);
    if (excess > bestExcess) {
      bestExcess = excess;
      best = { first, last: index, units };
    }
    // What is more than the bucket holds never fits, however long it waits.
    const excessAlone = (unitsOf(index) - burst) * perUs;
    if (excessAlone > bestExcess) {
      bestExcess = excessAlone;
      best = { first: index, last: index, units: unitsOf(index) };
    }
  }
  return best;
}
