import type { QuotaRule } from "./rule.js";

/** How a calendar is cut into periods. */
export type Calendar = Pick<QuotaRule, "per" | "timeZone">;

/** One period, by when it begins and ends on the wall clock, in whole milliseconds. */
interface Period {
  readonly startsAtMs: number;
  readonly endsAtMs: number;
}

/** Longer than any period. */
const REACH_MS = 32 * 24 * 3_600_000;

/** What tells one period from all others within its reach. An hour that comes twice in autumn differs by its offset from UTC. */
const LABELS: Readonly<Record<Calendar["per"], Intl.DateTimeFormatOptions>> = {
  month: { month: "numeric" },
  day: { month: "numeric", day: "numeric" },
  hour: { month: "numeric", day: "numeric", hour: "numeric", timeZoneName: "longOffset" },
};

/** Calendar periods of time zones, by the local clock, whatever summer time does to their length. An hour in which the clock is set forward or back is two periods. */
export class WallCalendar {
  readonly #formats = new Map<string, Intl.DateTimeFormat>();
  readonly #last = new Map<string, Period>();

  constructor(readonly wallMs: () => number) {}

  /** The period that holds `wallMs`, or the latest one there has been: a wall clock set back stays in the period it was in. */
  periodAt({ per, timeZone }: Calendar, wallMs: number): Period {
    const name = `${per} ${timeZone}`;
    const last = this.#last.get(name);
    if (last !== undefined && wallMs < last.endsAtMs) return last;
    const format = this.#formats.get(name) ?? new Intl.DateTimeFormat("en-US", { ...LABELS[per], timeZone });
    this.#formats.set(name, format);
    const label = format.format(wallMs);
    const isInside = (ms: number): boolean => format.format(ms) === label;
    const startsAtMs = firstAfter(wallMs - REACH_MS, wallMs, isInside);
    const endsAtMs = firstAfter(wallMs, wallMs + REACH_MS, (ms) => !isInside(ms));
    const period = { startsAtMs, endsAtMs };
    this.#last.set(name, period);
    return period;
  }
}

/** The first whole millisecond above `low` and up to `high` that has come: found by halving, since it stays so. */
function firstAfter(low: number, high: number, hasCome: (ms: number) => boolean): number {
  let before = Math.floor(low);
  let after = Math.ceil(high);
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (hasCome(middle)) after = middle;
    else before = middle;
  }
  return after;
}
