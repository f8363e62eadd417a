import type { CompiledPolicy } from "../../policy/types.js";
import { sorted, type Timeline, type Trace } from "./trace.js";

/** One entry of a policy, made ready. */
export type AuditRule = NonNullable<CompiledPolicy["global"]>;

/** Starts in a row, both ends included, and the units they took. */
export interface Run {
  readonly first: number;
  readonly last: number;
  readonly units: number;
  /** How many there was room for, where that depends on the run. */
  readonly allowed?: number;
}

/** What each start took, by its place in the timeline. */
export type UnitsOf = (index: number) => number;

/**
 * The most units that lie within less than `perUs` whatever their times are, and so in one interval (t, t + P].
 *
 * Two pointers: linear. Undefined for no starts.
 */
export function fullestRun({ length, lo, hi }: Timeline, perUs: number, unitsOf: UnitsOf): Run | undefined {
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

/**
 * The most crowded run where at most `count` starts may lie in any (t, t + P], each start taking one place.
 *
 * Gives every start the earliest time that its interval and the starts before it leave: at least P after the one `count` places
 * before. No choice of times does better for any of them, so a start that then comes after its interval proves that none
 * complies, and if there is none such, these times comply. That start, and those it was pushed by, are the run: k * count + 1
 * starts in a time shorter than k * P. Undefined: all have room.
 */
export function crowdedRun({ length, lo, hi }: Timeline, count: number, perUs: number) {
  const earliest = new Float64Array(length);
  // Where the pushing began that led to each start.
  const origin = new Uint32Array(length);
  let best: Required<Run> | undefined;
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

// No greater debt is remembered, so that all numbers stay exact. It can only hide a violation behind one that is greater.
const mostOwed = 2 ** 52;

/**
 * The run of starts that exceeds the bucket by most: more than `burst + t * count / per` units in t, whatever their times are.
 *
 * A meter that each start raises and time lowers, read at the last moment each start may have. The run begins where the meter
 * was last empty. Exact for any costs: with starts in order, a bucket has room for the last unit of a heavy start exactly when it
 * has room for all of it. Undefined: every start has room.
 */
export function overflowingRun({ length, lo, hi }: Timeline, rule: AuditRule, unitsOf: UnitsOf): Run | undefined {
  const { rateCount: count, ratePerUs: perUs, burst } = rule;
  let owed = 0;
  let first = 0;
  let units = 0;
  let best: Run | undefined;
  let bestExcess = 0;
  const note = (excess: number, run: Run): void => {
    if (excess <= bestExcess) return;
    bestExcess = excess;
    best = run;
  };
  for (let index = 0; index < length; index++) {
    if (index > 0) owed = Math.max(0, owed - (lo[index] - lo[index - 1]) * count);
    if (owed === 0) {
      first = index;
      units = 0;
    }
    const own = unitsOf(index);
    units += own;
    owed = Math.min(mostOwed, owed + own * perUs);
    // The end of an interval is not part of it: reaching it exactly is too late, which half a unit-microsecond stands for.
    const late = lo[index] === hi[index] ? 0 : (hi[index] + 1 - lo[index]) * count - 0.5;
    note(owed - burst * perUs - late, { first, last: index, units });
    // What is more than the bucket holds never fits, however long it waits.
    note((own - burst) * perUs, { first: index, last: index, units: own });
  }
  return best;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
// Zones change their offset at such instants only.
const steadyMs = 15 * 60_000;

type Quota = NonNullable<AuditRule["quota"]>;

/**
 * The fullest period of the calendar beyond `quota.count`: the starts that are surely in it, and those that found no room in the
 * one before. Undefined where none is.
 *
 * A start that may lie on either side of a period's end takes room in the earlier one if there is some. That is exact for starts
 * of one unit; a heavier one may be divided between the two, which only forgives. One that may lie in three periods is left out.
 */
export function fullestPeriod({ length, lo, hi }: Timeline, quota: Quota, unitsOf: UnitsOf, wallAtZeroMs: number) {
  const periodOf = periodFinder(quota);
  let best: Run | undefined;
  const note = (units: number, first: number, last: number): void => {
    if (units > quota.count && units > (best?.units ?? 0)) best = { units, first, last };
  };
  let period = Number.NEGATIVE_INFINITY;
  // Units surely in this period, and from `loosest` on those that may go to the next one instead.
  let sure = 0;
  let loose = 0;
  let first = 0;
  let loosest = 0;
  for (let index = 0; index <= length; index++) {
    const isEnd = index === length;
    const earliest = isEnd ? Number.POSITIVE_INFINITY : periodOf(lo[index] / 1000 + wallAtZeroMs);
    const latest = isEnd ? earliest : periodOf(hi[index] / 1000 + wallAtZeroMs);
    if (latest - earliest > 1) continue;
    if (earliest > period) {
      const carried = Math.max(0, loose - Math.max(0, quota.count - sure));
      note(carried, loosest, index - 1);
      const isNext = earliest === period + 1;
      first = isNext && carried > 0 ? loosest : index;
      sure = isNext ? carried : 0;
      loose = 0;
      period = earliest;
    }
    if (isEnd) break;
    if (latest === earliest) sure += unitsOf(index);
    else {
      if (loose === 0) loosest = index;
      loose += unitsOf(index);
    }
    note(sure, first, index);
  }
  return best;
}

/** Numbers the periods of a calendar, one more for each. Asks for the zone's offset once in a quarter of an hour. */
function periodFinder({ per, timeZone }: Quota): (wallMs: number) => number {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  let steady = Number.NaN;
  let offsetMs = 0;
  return (wallMs) => {
    const block = Math.floor(wallMs / steadyMs);
    if (block !== steady) {
      steady = block;
      // Swedish writes "2026-01-31 23:59:59", which reads as UTC once it says so.
      offsetMs = Date.parse(`${format.format(block * steadyMs).replace(" ", "T")}Z`) - block * steadyMs;
    }
    // The hour that is repeated in autumn is two hours: only the minutes of the offset move them.
    if (per === "hour") return Math.floor((wallMs + (offsetMs % hourMs)) / hourMs);
    if (per === "day") return Math.floor((wallMs + offsetMs) / dayMs);
    const local = new Date(wallMs + offsetMs);
    return local.getUTCFullYear() * 12 + local.getUTCMonth();
  };
}

/** Entries that surely hold something at one instant, by number. */
export interface Crowd {
  readonly atUs: number;
  readonly units: number;
  readonly ids: Uint32Array;
}

/** What each entry holds, and until when. */
export interface Holding {
  /** The first instant at which it surely holds nothing any more, by the entry's number; NaN: not known, and it never counts. */
  readonly untilUs: (id: number) => number;
  readonly unitsOf: (id: number) => number;
}

/**
 * The greatest crowd there surely was: those that have started at the latest by some instant and hold on beyond it.
 *
 * What is given back at an instant is free at that instant. Exact where all instants are; with intervals it is sufficient only:
 * starts that may or may not have met are taken not to have. Undefined where nothing holds anything for sure.
 */
export function greatestCrowd(trace: Trace, ids: Uint32Array, { untilUs, unitsOf }: Holding): Crowd | undefined {
  const holding = ids.filter((id) => untilUs(id) > trace.hiOf(id));
  const byStart = sorted(holding, (id) => trace.hiOf(id));
  const byEnd = sorted(holding, untilUs);
  let ended = 0;
  let units = 0;
  let atUs = 0;
  let most = 0;
  for (const id of byStart) {
    const nowUs = trace.hiOf(id);
    for (; ended < byEnd.length && untilUs(byEnd[ended]) <= nowUs; ended += 1) units -= unitsOf(byEnd[ended]);
    units += unitsOf(id);
    if (units > most) {
      most = units;
      atUs = nowUs;
    }
  }
  if (most === 0) return undefined;
  const there = byStart.filter((id) => trace.hiOf(id) <= atUs && untilUs(id) > atUs);
  return { atUs, units: most, ids: there };
}
