import { readThousandths } from "./fieldValue.js";

/** A point of the calendar as it was written. Clock and zone have passed their pattern already. */
interface Moment {
  readonly year: number;
  /** From 0 to 11. */
  readonly month: number;
  readonly day: number;
  /** `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f`. */
  readonly clock: string;
  /** `GMT`, `UTC`, `Z` or an offset, `+0130` say. */
  readonly zone: string;
}

const maxDateLength = 64;

const shortDayPattern = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const longDayPattern = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
const monthPattern = "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const hourMinutePattern = "(?:[01]\\d|2[0-3]):[0-5]\\d";
const secondPattern = ":(?:[0-5]\\d|60)";
const clockPattern = `(${hourMinutePattern}${secondPattern})`;
const zonePattern = "(GMT|UTC|[+-](?:[01]\\d|2[0-3]):?[0-5]\\d)";

// The grammar is case-sensitive, but RFC 9111 (4.2) has caches read dates in any case, and no other reading is possible.
const fixdate = new RegExp(
  `^${shortDayPattern}, (\\d\\d) ${monthPattern} (\\d{4}) ${clockPattern} ${zonePattern}$`,
  "i",
);
const rfc850Date = new RegExp(
  `^${longDayPattern}, (\\d\\d)-${monthPattern}-(\\d\\d) ${clockPattern} ${zonePattern}$`,
  "i",
);
const asctimeDate = new RegExp(`^${shortDayPattern} ${monthPattern} (\\d\\d| \\d) ${clockPattern} (\\d{4})$`, "i");
const isoInstant = new RegExp(
  `^(\\d{4})-(\\d\\d)-(\\d\\d)T(${hourMinutePattern}(?:${secondPattern}(?:\\.\\d+)?)?)(Z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)$`,
  "i",
);

/**
 * Reads a date of HTTP as milliseconds since 1970, rounded up; null when it is none or not in the calendar.
 *
 * Takes IMF-fixdate, RFC 850 and asctime, all UTC; as tolerance also `UTC` or a numeric offset in place of `GMT`, and
 * an ISO 8601 instant. The weekday need not fit the date. Second 60 is the next second. A two-digit year is the latest
 * that is not more than 50 years after `nowMs`.
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  if (text.length > maxDateLength) return null;

  let match = fixdate.exec(text);
  if (match !== null) {
    const [, day, name, year, clock, zone] = match;
    return instantMs({ year: Number(year), month: monthOf(name), day: Number(day), clock, zone });
  }
  match = isoInstant.exec(text);
  if (match !== null) {
    const [, year, month, day, clock, zone] = match;
    return instantMs({ year: Number(year), month: Number(month) - 1, day: Number(day), clock, zone });
  }
  match = rfc850Date.exec(text);
  if (match !== null) {
    const [, day, name, year, clock, zone] = match;
    return inSomeCentury({ year: Number(year), month: monthOf(name), day: Number(day), clock, zone }, nowMs);
  }
  match = asctimeDate.exec(text);
  if (match !== null) {
    const [, name, day, clock, year] = match;
    return instantMs({ year: Number(year), month: monthOf(name), day: Number(day), clock, zone: "GMT" });
  }
  return null;
}

function inSomeCentury(moment: Moment, nowMs: number): number | null {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const latestMs = new Date(nowMs).setUTCFullYear(thisYear + 50);
  const nextCentury = thisYear - (thisYear % 100) + 100;
  for (const century of [nextCentury, nextCentury - 100, nextCentury - 200]) {
    const atMs = instantMs({ ...moment, year: century + moment.year });
    if (atMs !== null && atMs <= latestMs) return atMs;
  }
  return null;
}

function instantMs({ year, month, day, clock, zone }: Moment): number | null {
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month, day);
  // A day that the month does not have rolls over into another month.
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return null;
  return midnight.getTime() + clockMs(clock) - offsetMs(zone);
}

function clockMs(clock: string): number {
  const [hour, minute, second = "0"] = clock.split(":");
  return (Number(hour) * 60 + Number(minute)) * 60_000 + (readThousandths(second) ?? 0);
}

function offsetMs(zone: string): number {
  const sign = zone.charAt(0);
  if (sign !== "+" && sign !== "-") return 0;
  const digits = zone.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return (sign === "-" ? -minutes : minutes) * 60_000;
}

function monthOf(name: string): number {
  return monthNames.indexOf(name.toLowerCase());
}
