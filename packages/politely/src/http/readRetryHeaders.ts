import { maxDurationUs } from "../policy/duration.js";
import type { HeadersLike } from "../types.js";
import { readThousandths, trimField } from "./fieldValue.js";
import { parseHttpDate } from "./httpDate.js";
import { millisecondsUntil, parseRetryAfter } from "./retryAfter.js";

/** The fields that say how long to stay away, and the clock that they are measured by. Absent is undefined. */
interface RetryFields {
  retryAfterMs: string | undefined;
  retryAfter: string | undefined;
  xRetryAfter: string | undefined;
  xRateLimitRetryAfter: string | undefined;
  date: string | undefined;
}

type FieldKey = keyof RetryFields;

/** More lines than this of one field are nonsense, and count as absent. */
const maxFieldLines = 64;

/** From here on a vendor's number, in thousandths, is Unix time in seconds. */
const unixSecondsFrom = 1e9 * 1_000;

/** From here on a vendor's number, in thousandths, is Unix time in milliseconds. */
const unixMillisecondsFrom = 1e12 * 1_000;

/**
 * Reads how long an answer asks to stay away, in whole microseconds, rounded up and at most 100 years.
 *
 * The first that asks for some time decides: `retry-after-ms`, `Retry-After`, `X-Retry-After`,
 * `X-RateLimit-Retry-After`. In the last two a number of 1e9 or more is Unix time. Dates and Unix times count from the
 * `Date` of the answer when it is valid, else from `wallMs`, in milliseconds since 1970. Gives 0 when nothing is said:
 * absent, unusable, zero or past. Never throws; headers that do count as absent.
 */
export function readRetryAfterUs(headers: HeadersLike, wallMs: number): number {
  const fields = retryFields(headers);
  if (fields === undefined) return 0;

  const exactUs = readThousandths(trimField(fields.retryAfterMs));
  if (exactUs !== null && exactUs > 0) return Math.min(exactUs, maxDurationUs);

  const nowMs = parseHttpDate(trimField(fields.date), wallMs) ?? wallMs;
  const waitMs =
    parseRetryAfter(fields.retryAfter, nowMs) ||
    vendorWaitMs(fields.xRetryAfter, nowMs) ||
    vendorWaitMs(fields.xRateLimitRetryAfter, nowMs) ||
    0;
  return Math.min(waitMs * 1_000, maxDurationUs);
}

function vendorWaitMs(value: string | undefined, nowMs: number): number | null {
  const number = readThousandths(trimField(value));
  if (number === null) return parseRetryAfter(value, nowMs);
  if (number < unixSecondsFrom) return number;
  return millisecondsUntil(number < unixMillisecondsFrom ? number : number / 1_000, nowMs);
}

/** The fields of any kind of headers; undefined when none of them asks for anything, or the headers cannot be read. */
function retryFields(headers: unknown): RetryFields | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  try {
    return hasGet(headers) ? fieldsByGet(headers) : fieldsOfRecord(headers);
  } catch {
    // Headers are the client's own object. One that fails must not take the answer it came with down as well.
    return undefined;
  }
}

function hasGet(headers: object): headers is { get(name: string): unknown } {
  return "get" in headers && typeof headers.get === "function";
}

function fieldsByGet(headers: { get(name: string): unknown }): RetryFields | undefined {
  const retryAfterMs = textOf(headers.get("retry-after-ms"));
  const retryAfter = textOf(headers.get("retry-after"));
  const xRetryAfter = textOf(headers.get("x-retry-after"));
  const xRateLimitRetryAfter = textOf(headers.get("x-ratelimit-retry-after"));
  if ((retryAfterMs ?? retryAfter ?? xRetryAfter ?? xRateLimitRetryAfter) === undefined) return undefined;
  return { retryAfterMs, retryAfter, xRetryAfter, xRateLimitRetryAfter, date: textOf(headers.get("date")) };
}

function fieldsOfRecord(headers: object): RetryFields | undefined {
  let fields: RetryFields | undefined;
  let date: string | undefined;
  for (const name of Object.keys(headers)) {
    const key = fieldKey(name);
    const text = key === undefined ? undefined : textOf((headers as Readonly<Record<string, unknown>>)[name]);
    if (key === undefined || text === undefined) continue;
    if (key === "date") {
      date = joined(date, text);
      continue;
    }
    fields ??= {
      retryAfterMs: undefined,
      retryAfter: undefined,
      xRetryAfter: undefined,
      xRateLimitRetryAfter: undefined,
      date: undefined,
    };
    fields[key] = joined(fields[key], text);
  }
  if (fields !== undefined) fields.date = date;
  return fields;
}

/** Which field a name in any case stands for. The length tells most names apart without a lower-case copy. */
function fieldKey(name: string): FieldKey | undefined {
  switch (name.length) {
    case 4:
      return name.toLowerCase() === "date" ? "date" : undefined;
    case 11:
      return name.toLowerCase() === "retry-after" ? "retryAfter" : undefined;
    case 13:
      return name.toLowerCase() === "x-retry-after" ? "xRetryAfter" : undefined;
    case 14:
      return name.toLowerCase() === "retry-after-ms" ? "retryAfterMs" : undefined;
    case 23:
      return name.toLowerCase() === "x-ratelimit-retry-after" ? "xRateLimitRetryAfter" : undefined;
    default:
      return undefined;
  }
}

/** One name in two spellings is one field on two lines. */
function joined(before: string | undefined, text: string): string {
  return before === undefined ? text : `${before}, ${text}`;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (!Array.isArray(value) || value.length === 0 || value.length > maxFieldLines) return undefined;
  const lines = value.map((line: unknown) => (typeof line === "number" ? String(line) : line));
  return lines.every((line) => typeof line === "string") ? lines.join(", ") : undefined;
}
