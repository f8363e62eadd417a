import type { CompiledPolicy } from "../../policy/types.js";
import type { Timeline } from "./timeline.js";

/** One entry of a policy, made ready. */
export type AuditRule = NonNullable<CompiledPolicy["global"]>;
type Quota = NonNullable<AuditRule["quota"]>;

/** A period of the calendar with too much in it. */
export interface FullPeriod {
  readonly units: number;
  /** The starts that are surely in it, and those that found no room in the one before. */
  readonly first: number;
  readonly last: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
// Zones change their offset at such instants only.
const STEADY_MS = 15 * MINUTE_MS;

/**
 * The fullest period of the calendar beyond `quota.count`; undefined where none is.
 *
 * A start that may lie on either side of a period's end takes room in the earlier one if there is some. That is exact for starts
 * of one unit; a heavier one may be divided between the two, which only forgives. One that may lie in three periods is left out.
 */
export function fullestPeriod(
  timeline: Timeline,
  quota: Quota,
  unitsOf: (index: number) => number,
  wallAtZeroMs: number,
): FullPeriod | undefined {
  const periodOf = periodFinder(quota);
  const wallMs = (us: number): number => us / 1000 + wallAtZeroMs;
  let best: FullPeriod | undefined;
  const note = (units: number, first: number, last: number): void => {
    if (units > quota.count && units > (best?.units ?? 0)) best = { units, first, last };
  };
  let period = Number.NEGATIVE_INFINITY;
  // Units surely in this period, and from `loosest` on those that may go to the next one instead.
  let sure = 0;
  let loose = 0;
  let first = 0;
  let loosest = 0;
  for (let index = 0; index <= timeline.length; index++) {
    const isEnd = index === timeline.length;
    const earliest = isEnd ? Number.POSITIVE_INFINITY : periodOf(wallMs(timeline.lo[index]));
    const latest = isEnd ? earliest : periodOf(wallMs(timeline.hi[index]));
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
export function periodFinder({ per, timeZone }: Quota): (wallMs: number) => number {
  const offsetAt = offsetFinder(timeZone);
  return (wallMs) => {
    const offsetMs = offsetAt(wallMs);
    // The hour that is repeated in autumn is two hours: only the minutes of the offset move them.
    if (per === "hour") return Math.floor((wallMs + positiveRest(offsetMs, HOUR_MS)) / HOUR_MS);
    if (per === "day") return Math.floor((wallMs + offsetMs) / DAY_MS);
    const local = new Date(wallMs + offsetMs);
    return local.getUTCFullYear() * 12 + local.getUTCMonth();
  };
}

function offsetFinder(timeZone: string): (wallMs: number) => number {
  if (timeZone === "UTC") return () => 0;
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  let steady = Number.NaN;
  let offsetMs = 0;
  return (wallMs) => {
    const block = Math.floor(wallMs / STEADY_MS);
    if (block === steady) return offsetMs;
    steady = block;
    // Swedish writes "2026-01-31 23:59:59", which reads as UTC once it says so.
    const text = format.format(block * STEADY_MS).replace(" ", "T");
    offsetMs = Date.parse(`${text}Z`) - block * STEADY_MS;
    return offsetMs;
  };
}

function positiveRest(value: number, by: number): number {
  return ((value % by) + by) % by;
}
