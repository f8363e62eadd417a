import { type Calendar, WallCalendar } from "../../core/calendar.js";

/**
 * Tells scripts, which know no calendars, where periods begin: the one before, the present and the next one of each calendar, in milliseconds.
 *
 * That is enough while this process's clock, corrected by what Redis last said, is less than a period off. Else the script says what it lacks.
 */
export class Calendars {
  readonly #bounds = new Map<string, readonly number[]>();
  /** How far the time of Redis is ahead of this process's wall clock. */
  #offsetMs = 0;

  /** Where the periods of all calendars begin that were needed so far; undefined where none was. */
  bounds(needed: readonly (Calendar | undefined)[]): object | undefined {
    for (const calendar of needed) if (calendar !== undefined) this.#need(calendarName(calendar));
    for (const name of this.#bounds.keys()) this.#need(name);
    return this.#bounds.size > 0 ? Object.fromEntries(this.#bounds) : undefined;
  }

  /** Hears what Redis says the time is. */
  hear(wallMs: number): void {
    this.#offsetMs = wallMs - Date.now();
  }

  /** Another program has counted in this calendar. */
  add(name: string): void {
    this.#need(name);
  }

  #need(name: string): void {
    const wallMs = Date.now() + this.#offsetMs;
    const [, startsAtMs = 0, endsAtMs = 0] = this.#bounds.get(name) ?? [];
    if (wallMs >= startsAtMs && wallMs < endsAtMs) return;
    const [per, timeZone] = name.split(" ") as [Calendar["per"], string];
    const periodAt = (ms: number): ReturnType<WallCalendar["periodAt"]> =>
      new WallCalendar(Date.now).periodAt({ per, timeZone }, ms);
    const present = periodAt(wallMs);
    const before = periodAt(present.startsAtMs - 1);
    const next = periodAt(present.endsAtMs);
    this.#bounds.set(name, [before.startsAtMs, present.startsAtMs, present.endsAtMs, next.endsAtMs]);
  }
}

/** How a script names a calendar. */
export function calendarName({ per, timeZone }: Calendar): string {
  return `${per} ${timeZone}`;
}
