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

/** What a robots.txt asks of the pace; see `Robots`. */
export interface RobotsPace {
  readonly crawlDelaySec: number | null;
  readonly requestRate: RequestRate | null;
  readonly visitTime: DailyHours | null;
}

/** What of it is about gaps. */
export type RobotsGaps = Pick<RobotsPace, "crawlDelaySec" | "requestRate">;

const minuteMs = 60_000;
const dayMs = 86_400_000;

/**
 * Says how long it is until the hours open, in whole milliseconds, rounded up; 0 when `wallMs` is within them, and for null.
 *
 * The start belongs to the hours, the end does not. An end before the start is on the next day. Equal start and end are the whole day, and
 * an end of 2359 is the end of the day. `wallMs` is in milliseconds since 1970; throws `RangeError` when it is no time.
 */
export function msUntilOpen(hours: DailyHours | null, wallMs: number): number {
  if (hours === null) return 0;
  const sinceStart = msSinceStart(hours, wallMs);
  return sinceStart < msOpen(hours) ? 0 : Math.ceil(dayMs - sinceStart);
}

/**
 * Says which gap between two starts a robots.txt asks for at `wallMs`, in whole milliseconds, rounded up; 0 when it asks for none.
 *
 * Of Crawl-delay and Request-rate the longer gap counts. A Request-rate with hours counts within them only; see `msUntilOpen`. Requests that
 * come one gap apart never exceed the rate. `wallMs` is in milliseconds since 1970; throws `RangeError` when it is no time.
 */
export function robotsGapMs({ crawlDelaySec, requestRate }: RobotsGaps, wallMs: number): number {
  const delayMs = roundUp((crawlDelaySec ?? 0) * 1_000);
  if (requestRate === null) return delayMs;
  const { requests, seconds, start, end } = requestRate;
  const isNow = start === undefined || end === undefined || msUntilOpen({ start, end }, wallMs) === 0;
  return isNow ? Math.max(delayMs, roundUp((seconds * 1_000) / requests)) : delayMs;
}

/**
 * Says how long `robotsGapMs` stays what it is at `wallMs`, in whole milliseconds, rounded up: until the hours of the Request-rate begin or
 * end. Infinity when there are none, when they are the whole day, and when the Crawl-delay asks for no less anyway.
 */
export function msUntilGapChanges({ crawlDelaySec, requestRate }: RobotsGaps, wallMs: number): number {
  const { start, end } = requestRate ?? {};
  if (requestRate === null || start === undefined || end === undefined) return Number.POSITIVE_INFINITY;
  const { requests, seconds } = requestRate;
  const delayMs = robotsGapMs({ crawlDelaySec, requestRate: null }, wallMs);
  const isNeverOther = robotsGapMs({ crawlDelaySec, requestRate: { requests, seconds } }, wallMs) === delayMs;
  const openMs = msOpen({ start, end });
  if (isNeverOther || openMs === dayMs) return Number.POSITIVE_INFINITY;
  const sinceStart = msSinceStart({ start, end }, wallMs);
  return Math.ceil((sinceStart < openMs ? openMs : dayMs) - sinceStart);
}

function msSinceStart({ start }: DailyHours, wallMs: number): number {
  if (!Number.isFinite(wallMs)) {
    throw new RangeError(`wallMs must be a time in milliseconds since 1970; got ${wallMs}.`);
  }
  const since = (wallMs - minuteOf(start) * minuteMs) % dayMs;
  return since < 0 ? since + dayMs : since;
}

function msOpen({ start, end }: DailyHours): number {
  const endMinute = end === "2359" ? 1_440 : minuteOf(end);
  const minutes = (endMinute - minuteOf(start) + 1_440) % 1_440;
  return (minutes === 0 ? 1_440 : minutes) * minuteMs;
}

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(2));
}

/** Rounds up to a whole millisecond, but not for the last digits of a binary fraction: 0.07 s are 70 ms and not 71. */
function roundUp(ms: number): number {
  return Math.min(Math.ceil(ms - ms * 2 ** -50), Number.MAX_SAFE_INTEGER);
}
