import type { Calendar, Calendars, Period } from "./key.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Calendar periods of time zones. An index grows by one from each period to the next.
 *
 * Days and months follow the local date, whatever summer time does to their length; hours follow the local clock's minutes.
 */
export class WallCalendar implements Calendars {
  readonly #formats = new Map<string, Intl.DateTimeFormat>();
  readonly #last = new Map<string, Period>();

  constructor(readonly wallMs: () => number) {}

  /** The period that holds `wallMs`, or the latest one there has been: a wall clock set back stays in the period it was in. */
  periodAt(quota: Calendar, wallMs: number): Period {
    const name = `${quota.per} ${quota.timeZone}`;
    const last = this.#last.get(name);
    if (last !== undefined && wallMs >= last.startsAtMs && wallMs < last.endsAtMs) return last;
    const index = this.#indexAt(quota, wallMs);
    if (last !== undefined && index < last.index) return last;
    const period = this.periodNumber(quota, index);
    this.#last.set(name, period);
    return period;
  }

  /** The period with that index. */
  periodNumber(quota: Calendar, index: number): Period {
    return { index, startsAtMs: this.#startOf(quota, index), endsAtMs: this.#startOf(quota, index + 1) };
  }

  /** The first instant of a period: found by halving, since a zone may skip the hour where a day would begin. */
  #startOf(quota: Calendar, index: number): number {
    const guessMs = guessStart(quota, index);
    let low = guessMs - 2 * DAY_MS;
    let high = guessMs + 2 * DAY_MS;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#indexAt(quota, middle) >= index) high = middle;
      else low = middle;
    }
    return high;
  }

  #indexAt(quota: Calendar, wallMs: number): number {
    const local = this.#localMs(quota.timeZone, wallMs);
    if (quota.per === "hour") {
      // Only the part of the offset below an hour moves the hours, so that the hour repeated in autumn is two periods.
      const offsetMs = (((local - wallMs) % HOUR_MS) + HOUR_MS) % HOUR_MS;
      return Math.floor((wallMs + offsetMs) / HOUR_MS);
    }
    if (quota.per === "day") return Math.floor(local / DAY_MS);
    return monthOf(Math.floor(local / DAY_MS));
  }

  /** The local clock's reading, as if it were UTC. */
  #localMs(timeZone: string, wallMs: number): number {
    if (timeZone === "UTC") return wallMs;
    let format = this.#formats.get(timeZone);
    if (format === undefined) {
      format = new Intl.DateTimeFormat("en-US", {
        timeZone,
        calendar: "gregory",
        numberingSystem: "latn",
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      });
      this.#formats.set(timeZone, format);
    }
    const part = new Map(format.formatToParts(wallMs).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes): number => part.get(type) ?? 0;
    const days = firstDayOf(of("year") * 12 + of("month") - 1) + of("day") - 1;
    const wholeMs = days * DAY_MS + of("hour") * HOUR_MS + of("minute") * 60_000 + of("second") * 1000;
    return wholeMs + (((wallMs % 1000) + 1000) % 1000);
  }
}

function guessStart(quota: Calendar, index: number): number {
  if (quota.per === "hour") return index * HOUR_MS;
  if (quota.per === "day") return index * DAY_MS;
  return firstDayOf(index) * DAY_MS;
}

/** The first day of a month that is counted from January of the year 0, in days since 1970. */
function firstDayOf(month: number): number {
  // Years begin in March here, so that the leap day is the last of its year.
  const fromMarch = month - 2;
  const year = Math.floor(fromMarch / 12);
  const daysBefore = Math.floor((153 * (fromMarch - 12 * year) + 2) / 5);
  return 365 * year + Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400) + daysBefore - 719_468;
}

/** The month that holds a day. */
function monthOf(day: number): number {
  let month = Math.floor((day + 719_528) / 30.436_875) - 1;
  while (firstDayOf(month + 1) <= day) month += 1;
  return month;
}
