/** A time of each day in UTC, from the start to just before the end, both as `HHMM`; over midnight when the end is before the start. */
export interface DailyHours {
  readonly start: string;
  readonly end: string;
}

/** How many requests a site takes in how many seconds; with `start` and `end` only at that time of the day, in UTC as `HHMM`. */
export interface RequestRate {
  readonly requests: number;
  readonly seconds: number;
  readonly start?: string;
  readonly end?: string;
}

const decimal = /^(?:\d+(?:\.\d*)?|\.\d+)$/;
const rate = /^(\d{1,12})\s*\/\s*(\d{1,12})\s*([smhd]?)(?:\s+(\S.*))?$/i;
const hours = /^(\d\d):?(\d\d)(?:\s*-\s*|\s+)(\d\d):?(\d\d)$/;

const unitSeconds: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3_600, d: 86_400 };

/** No usable rate or time is longer. */
const maxLength = 64;

/** Reads the value of a Crawl-delay line in seconds: a decimal without sign or exponent, at most 2^53-1. Null for anything else. */
export function readCrawlDelay(value: string): number | null {
  return decimal.test(value) ? Math.min(Number(value), Number.MAX_SAFE_INTEGER) : null;
}

/** Reads the value of a Request-rate line: `3/15`, `1/10m`, `1/5s 0800-1730`. Null for anything else, and when one of the numbers is 0. */
export function readRequestRate(value: string): RequestRate | null {
  const match = value.length > maxLength ? null : rate.exec(value);
  if (match === null) return null;
  const [, count, length, unit, range] = match;
  const requests = Number(count);
  const seconds = Number(length) * unitSeconds[unit.toLowerCase()];
  if (requests === 0 || seconds === 0) return null;
  if (range === undefined) return { requests, seconds };
  const when = readDailyHours(range);
  return when === null ? null : { requests, seconds, ...when };
}

/** Reads the value of a Visit-time line: `0200-0630`, also with a blank in place of the hyphen. Null for anything else. */
export function readDailyHours(value: string): DailyHours | null {
  const match = value.length > maxLength ? null : hours.exec(value);
  if (match === null) return null;
  const [, startHour, startMinute, endHour, endMinute] = match;
  const start = startHour + startMinute;
  const end = endHour + endMinute;
  return isTime(start) && (isTime(end) || end === "2400") ? { start, end } : null;
}

function isTime(text: string): boolean {
  return Number(text.slice(0, 2)) <= 23 && Number(text.slice(2)) <= 59;
}
