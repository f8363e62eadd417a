import { readDurationMs, readNumber, splitAtCommas, trimBlanks } from "./values.js";

/** A date as JavaScript writes it may have the long name of a zone at its end. */
const maxDateLength = 128;

const weekday = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const month = "(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const time = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d)(?::(?<second>(?:[0-5]\\d|60)(?:\\.\\d+)?))?";
const zone = "(?<zone>GMT|UTC|Z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)";
// The grammar is case-sensitive, but RFC 9111 (4.2) has caches read dates in any case, and no other reading is possible.
const form = (pattern: string): RegExp => new RegExp(`^${pattern}$`, "i");

/** IMF-fixdate, ISO 8601, RFC 850 and asctime. */
const dates = [
  form(`${weekday}, (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} ${zone}`),
  form(`(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)T${time}${zone}`),
  form(`(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\\d\\d)-${month}-(?<year>\\d\\d) ${time} ${zone}`),
  form(`${weekday} ${month} (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})`),
];

/** JavaScript's `Date` as text, and ISO 8601 with a space in place of the `T` or without a zone. */
const looseDates = [
  form(`${weekday} ${month} (?<day>\\d\\d) (?<year>\\d{4}) ${time} (?:GMT|UTC)(?<zone>[+-]\\d{4})?(?: \\([^()]*\\))?`),
  form(`(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)[T ]${time}(?: ?${zone})?`),
];

/**
 * Reads a `Retry-After` value as whole milliseconds from `nowMs`, rounded up; null when it is absent or unusable.
 *
 * Takes seconds, decimals included, and dates; see `readDate` for their forms. A date that is not ahead gives 0.
 * Of whole numbers joined with commas, the field sent several times, the largest counts. What exceeds 2^53-1
 * saturates there. Never throws; the work is linear in the length. `nowMs` is in milliseconds since 1970.
 */
export function parseRetryAfter(value: string | null | undefined, nowMs: number): number | null {
  const text = typeof value === "string" ? trimBlanks(value) : "";
  const delayMs = readNumber(text, 3);
  if (!Number.isNaN(delayMs)) return delayMs;
  const atMs = readDate(text, nowMs);
  if (atMs !== null) return millisecondsUntil(atMs, nowMs);
  const delays = splitAtCommas(text);
  if (!delays.every((delay) => /^\d+$/.test(delay))) return null;
  return delays.reduce((longest, delay) => Math.max(longest, readNumber(delay, 3)), 0);
}

/** Says what time it is, in milliseconds since 1970. It is asked only when an instant is read. */
export interface WallClock {
  nowMs(): number;
}

/**
 * Reads when a bucket resets, as whole milliseconds from now, rounded up; undefined when the text says nothing usable.
 *
 * A number below 1e9 is a delay, below 1e12 Unix time in seconds, from there on Unix time in milliseconds. A duration and
 * an instant are what they say. An instant that has passed gives 0. Of several values joined with commas the latest counts.
 * Parameters after a semicolon are skipped. What exceeds 2^53-1 saturates there. `unitMs` is what a small number counts,
 * 1,000 or 1. Where the field can only be a delay, no number of it is Unix time.
 */
export function readResetMs(text: string, clock: WallClock, unitMs: number, isDelay: boolean): number | undefined {
  const only = readOneResetMs(text, clock, unitMs, isDelay);
  if (only !== undefined || !text.includes(",")) return only;
  let latest = 0;
  for (const part of splitAtCommas(text)) {
    const ms = readOneResetMs(part, clock, unitMs, isDelay);
    if (ms === undefined) return undefined;
    latest = Math.max(latest, ms);
  }
  return latest;
}

function readOneResetMs(text: string, clock: WallClock, unitMs: number, isDelay: boolean): number | undefined {
  // Every date has a colon in it, and nothing else has.
  if (text.includes(":")) return millisecondsUntil(readDate(text, clock.nowMs(), true), clock.nowMs()) ?? undefined;
  const ms = readNumber(text, unitMs === 1 ? 0 : 3);
  if (Number.isNaN(ms)) {
    const semicolon = text.indexOf(";");
    if (semicolon === -1 || text.includes(",")) return readDurationMs(text);
    return readOneResetMs(text.slice(0, semicolon).trimEnd(), clock, unitMs, isDelay);
  }
  // Judged by what is before the point: rounding up must not make an instant of a delay.
  const whole = Number.parseInt(text, 10);
  if (isDelay || whole < 1e9) return ms;
  const unixMs = readNumber(text, whole < 1e12 ? 3 : 0);
  return unixMs === Number.MAX_SAFE_INTEGER ? unixMs : (millisecondsUntil(unixMs, clock.nowMs()) ?? undefined);
}

/**
 * Reads a date of HTTP as milliseconds since 1970, rounded up; null when it is none or not in the calendar.
 *
 * Takes IMF-fixdate, RFC 850 and asctime, all UTC; as tolerance also `UTC` or a numeric offset in place of `GMT`, and
 * an ISO 8601 instant. The weekday need not fit the date. Second 60 is the next second. A two-digit year is the latest
 * that is not more than 50 years after `nowMs`. `isLoose` adds the other forms in which servers write an instant.
 */
export function readDate(text: string, nowMs: number, isLoose = false): number | null {
  if (text.length > maxDateLength) return null;
  for (const each of isLoose ? [...dates, ...looseDates] : dates) {
    const written = each.exec(text)?.groups;
    if (written !== undefined) return instantOf(written, nowMs);
  }
  return null;
}

function instantOf(written: Readonly<Record<string, string>>, nowMs: number): number | null {
  const year = Number(written.year);
  if (written.year.length === 4) return instantInYear(year, written);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const latestMs = new Date(nowMs).setUTCFullYear(thisYear + 50);
  const nextCentury = thisYear - (thisYear % 100) + 100;
  const instants = [0, 100, 200].map((before) => instantInYear(nextCentury - before + year, written));
  return instants.find((atMs) => atMs !== null && atMs <= latestMs) ?? null;
}

function instantInYear(year: number, written: Readonly<Record<string, string | undefined>>): number | null {
  const { month: name = "", day, hour, minute, second = "0", zone: offset = "" } = written;
  const monthIndex = /\d/.test(name)
    ? Number(name) - 1
    : "janfebmaraprmayjunjulaugsepoctnovdec".indexOf(name.toLowerCase()) / 3;
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, monthIndex, Number(day));
  // A day that the month does not have rolls over into another month.
  if (midnight.getUTCMonth() !== monthIndex || midnight.getUTCDate() !== Number(day)) return null;
  const [, sign = "+", hours = "0", minutes = "0"] = /([+-])(\d\d):?(\d\d)?/.exec(offset) ?? [];
  const offsetMinutes = Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
  const clockMinutes = Number(hour) * 60 + Number(minute) - offsetMinutes;
  return midnight.getTime() + clockMinutes * 60_000 + readNumber(second, 3);
}

/** How long it is from `nowMs` until `atMs`: whole, rounded up, 0 when it has passed, null when either is no time. */
function millisecondsUntil(atMs: number | null, nowMs: number): number | null {
  if (atMs === null || !Number.isFinite(nowMs)) return null;
  return Math.min(Math.max(0, Math.ceil(atMs - nowMs)), Number.MAX_SAFE_INTEGER);
}
