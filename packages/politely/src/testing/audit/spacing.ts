import type { Timeline } from "./timeline.js";

/** Starts in a row, both ends included, and the units they took. */
export interface Run {
  readonly first: number;
  readonly last: number;
  readonly units: number;
}

/**
 * The most units that lie within less than `perUs` whatever their times are, and so in one interval (t, t + P].
 *
 * Two pointers: linear. Undefined for no starts.
 */
export function fullestRun(timeline: Timeline, perUs: number, unitsOf: (index: number) => number): Run | undefined {
  const { length, lo, hi } = timeline;
  let best: Run | undefined;
  let first = 0;
  let units = 0;
  for (let last = 0; last < length; last++) {
    units += unitsOf(last);
    // One start alone is always within any time.
    while (first < last && hi[last] - lo[first] >= perUs) {
      units -= unitsOf(first);
      first += 1;
    }
    if (best === undefined || units > best.units) best = { first, last, units };
  }
  return best;
}

/** The two starts in a row that are surely closest; undefined below two. `units` is 2. */
export function closestPair({ length, lo, hi }: Timeline): Run | undefined {
  let last = 0;
  for (let index = 1; index < length; index++) {
    if (last === 0 || hi[index] - lo[index - 1] < hi[last] - lo[last - 1]) last = index;
  }
  return last === 0 ? undefined : { first: last - 1, last, units: 2 };
}

/** A run of starts for which there is no room, and how many there is room for. */
export interface CrowdedRun extends Run {
  readonly allowed: number;
}

/**
 * The most crowded run where at most `count` starts may lie in any (t, t + P], each start taking one place.
 *
 * Gives every start the earliest time that its interval and the starts before it leave: at least P after the one `count` places
 * before. No choice of times does better for any of them, so a start that then comes after its interval proves that none
 * complies, and if there is none such, these times comply. That start, and those it was pushed by, are the run: k * count + 1
 * starts in a time shorter than k * P. Undefined: all have room.
 */
export function crowdedRun({ length, lo, hi }: Timeline, count: number, perUs: number): CrowdedRun | undefined {
  const earliest = new Float64Array(length);
  // Where the pushing began that led to each start.
  const origin = new Uint32Array(length);
  let best: CrowdedRun | undefined;
  for (let index = 0; index < length; index++) {
    const pushedTo = index < count ? Number.NEGATIVE_INFINITY : earliest[index - count] + perUs;
    earliest[index] = Math.max(lo[index], pushedTo);
    origin[index] = pushedTo > lo[index] ? origin[index - count] : index;
    if (earliest[index] <= hi[index]) continue;
    const first = origin[index];
    const units = index - first + 1;
    const allowed = count * (Math.floor((hi[index] - lo[first]) / perUs) + 1);
    if (best === undefined || units - allowed > best.units - best.allowed)
      best = { first, last: index, units, allowed };
  }
  return best;
}
