import type { QuotaRule } from "./rule.js";

/** How a calendar is cut into periods. */
export type Calendar = Pick<QuotaRule, "per" | "timeZone">;

/** One period, by when it begins and ends on the wall clock, in whole milliseconds. */
interface Period {
  readonly startsAtMs: number;
  readonly endsAtMs: number;
}

const HOUR_MS = 3_600_000;
/** Longer than any period. */
const REACH_MS = 32 * 24 * HOUR_MS;

/** Calendar periods of time zones. Days and months follow the local date, whatever summer time does to their length; hours follow the local clock's minutes. */
export class WallCalendar {
  readonly #formats = new Map<string, Intl.DateTimeFormat>();
  readonly #last = new Map<string, Period>();

  constructor(readonly wallMs: () => number) {}

  /** The period that holds `wallMs`, or the latest one there has been: a wall clock set back stays in the period it was in. */
  periodAt(calendar: Calendar, wallMs: number): Period {
    const name = `${calendar.per} ${calendar.timeZone}`;
    const last = this.#last.get(name);
    if (last !== undefined && wallMs < last.endsAtMs) return last;
    const label = this.#label(calendar, wallMs);
    const isInside = (ms: number): boolean => this.#label(calendar, ms) === label;
    const startsAtMs = firstAfter(wallMs - REACH_MS, wallMs, isInside);
    const endsAtMs = firstAfter(wallMs, wallMs + REACH_MS, (ms) => !isInside(ms));
    const period = { startsAtMs, endsAtMs };
    this.#last.set(name, period);
    return period;
  }

  /** The same text all through a period, and in no other one. */
  #label({ per, timeZone }: Calendar, wallMs: number): string {
    let format = this.#formats.get(timeZone);
    if (format === undefined) {
      const parts = { era: "short", year: "numeric", month: "numeric", day: "numeric", minute: "numeric" } as const;
      const options = { ...parts, second: "numeric", calendar: "gregory", numberingSystem: "latn", timeZone } as const;
      format = new Intl.DateTimeFormat("en-US", options);
      this.#formats.set(timeZone, format);
    }
    const part = new Map(format.formatToParts(wallMs).map(({ type, value }) => [type, value]));
    if (per !== "hour")
      return [part.get("era"), part.get("year"), part.get("month"), per === "day" && part.get("day")].join(" ");
    // Only the part of the offset below an hour moves the hours, so that the hour repeated in autumn is two periods.
    const localMs = Number(part.get("minute")) * 60_000 + Number(part.get("second")) * 1000 + remainder(wallMs, 1000);
    return String(Math.floor((wallMs + remainder(localMs - wallMs, HOUR_MS)) / HOUR_MS));
  }
}

function remainder(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
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
