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

/** A date as JavaScript writes it may have the long name of a zone at its end. */
const maxInstantLength = 128;

const shortDayPattern = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const longDayPattern = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
const monthPattern = "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const dayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** How many days a month has in any year: 29 February is left to the patterns. */
const shortestDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

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
const scriptDate = new RegExp(
  `^${shortDayPattern} ${monthPattern} (\\d\\d) (\\d{4}) ${clockPattern} (?:GMT|UTC)([+-](?:[01]\\d|2[0-3])[0-5]\\d)?(?: \\([^()]*\\))?$`,
  "i",
);
const looseInstant = /^(\d{4}-\d\d-\d\d)[T ](\d\d:[\d:.]+)(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?$/i;

/**
 * Reads a date of HTTP as milliseconds since 1970, rounded up; null when it is none or not in the calendar.
 *
 * Takes IMF-fixdate, RFC 850 and asctime, all UTC; as tolerance also `UTC` or a numeric offset in place of `GMT`, and
 * an ISO 8601 instant. The weekday need not fit the date. Second 60 is the next second. A two-digit year is the latest
 * that is not more than 50 years after `nowMs`.
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  if (text.length > maxDateLength) return null;
  const usualMs = usualFormMs(text);
  if (!Number.isNaN(usualMs)) return usualMs;

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

/**
 * The same for every form in which servers write an instant: besides those of `parseHttpDate` the one of JavaScript's `Date`
 * (`Sun Mar 01 2026 00:05:00 GMT+0000 (Coordinated Universal Time)`), and ISO 8601 with a space in place of the `T` or
 * without a zone, which then is UTC.
 */
export function parseInstant(text: string, nowMs: number): number | null {
  const atMs = parseHttpDate(text, nowMs);
  if (atMs !== null || text.length > maxInstantLength) return atMs;

  let match = scriptDate.exec(text);
  if (match !== null) {
    const [, name, day, year, clock, zone = "GMT"] = match;
    return instantMs({ year: Number(year), month: monthOf(name), day: Number(day), clock, zone });
  }
  match = looseInstant.exec(text);
  if (match === null) return null;
  const [, day, clock, zone = "Z"] = match;
  return parseHttpDate(`${day}T${clock}${/^[a-z]/i.test(zone) ? "Z" : zone}`, nowMs);
}

/**
 * Reads the two forms that nearly every server writes, `Sun, 01 Mar 2026 00:05:00 GMT` and `2026-03-01T00:05:00Z`, in a tenth
 * of the time a pattern takes. NaN for everything else, wrong dates included: the patterns judge those.
 */
function usualFormMs(text: string): number {
  if (text.length === 29) {
    const isFixed = text.endsWith(" GMT") && text.startsWith(", ", 3) && dayNames.includes(text.slice(0, 3));
    if (!isFixed || text[7] !== " " || text[11] !== " " || text[16] !== " ") return Number.NaN;
    const month = monthNames.indexOf(text.slice(8, 11));
    return month === -1 ? Number.NaN : usualMs(digitsAt(text, 12, 4), month, digitsAt(text, 5, 2), text, 17);
  }
  if (text.length !== 20 || text[4] !== "-" || text[7] !== "-" || text[10] !== "T" || text[19] !== "Z")
    return Number.NaN;
  return usualMs(digitsAt(text, 0, 4), digitsAt(text, 5, 2) - 1, digitsAt(text, 8, 2), text, 11);
}

/** Milliseconds since 1970 of a day and of the `hh:mm:ss` in `text` from `at` on; NaN unless each part is plainly in its range. */
function usualMs(year: number, month: number, day: number, text: string, at: number): number {
  if (text[at + 2] !== ":" || text[at + 5] !== ":") return Number.NaN;
  const hour = digitsAt(text, at, 2);
  const minute = digitsAt(text, at + 3, 2);
  const second = digitsAt(text, at + 6, 2);
  // A comparison with NaN is false, so each of them asks for what is right.
  const isDate = year >= 1_000 && month >= 0 && month < 12 && day >= 1 && day <= shortestDays[month];
  return isDate && hour < 24 && minute < 60 && second < 60
    ? Date.UTC(year, month, day, hour, minute, second)
    : Number.NaN;
}

/** The number that `count` digits from `at` on make; NaN when one of them is no digit. */
function digitsAt(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
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
  return monthNames.indexOf(name.charAt(0).toUpperCase() + name.slice(1).toLowerCase());
}
