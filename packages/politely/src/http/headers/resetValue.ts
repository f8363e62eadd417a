import { readCount, readNumberInThousandths, readUsed, splitAtCommas } from "./fieldValue.js";
import { parseInstant } from "./httpDate.js";
import { millisecondsUntil } from "./retryAfter.js";
import type { ServerClock } from "./serverClock.js";
import { readDurationMs } from "./timeSpan.js";

/** From here on a number is Unix time in seconds. */
const unixSecondsFrom = 1e9;

/** From here on a number is Unix time in milliseconds. */
const unixMillisecondsFrom = 1e12;

/** How to read the value of one reset field. */
export interface ResetReading {
  /** What instants are measured from. */
  readonly clock: ServerClock;
  /** What a small number counts: 1,000 for seconds, 1 for milliseconds. */
  readonly unitMs: number;
  /** The field can only be a delay, so that no number of it is Unix time. */
  readonly isDelay: boolean;
}

/**
 * Reads when a bucket resets, as whole milliseconds from now, rounded up; undefined when the text says nothing usable.
 *
 * A number below 1e9 is a delay, below 1e12 Unix time in seconds, from there on Unix time in milliseconds. A duration and
 * an instant are what they say. An instant that has passed gives 0. Of several values joined with commas the latest counts.
 * Parameters after a semicolon are not looked at. What exceeds 2^53-1 saturates there.
 */
export function readResetMs(text: string, reading: ResetReading): number | undefined {
  const ms = readOneResetMs(text, reading);
  if (ms !== undefined || !text.includes(",")) return ms;

  let latest: number | undefined;
  for (const part of splitAtCommas(text)) {
    const each = readOneResetMs(part, reading);
    if (each === undefined) return undefined;
    latest = Math.max(latest ?? 0, each);
  }
  return latest;
}

/** Reads Unix time as milliseconds since 1970, rounded up, from a number that is at least 1e9; undefined for a smaller one. */
export function readUnixMs(text: string, thousandths: number): number | undefined {
  // Judged by what is before the point: rounding up must not make an instant of a delay.
  const whole = readCount(text);
  if (whole < unixSecondsFrom) return undefined;
  if (whole < unixMillisecondsFrom) return thousandths;
  // Thousandths of a millisecond would not fit: whole ones, and one more for any part of one.
  return readUsed(text);
}

function readOneResetMs(text: string, { clock, unitMs, isDelay }: ResetReading): number | undefined {
  // Every date has a colon in it, and nothing else has.
  if (text.includes(":")) {
    const atMs = parseInstant(text, clock.nowMs());
    return atMs === null ? undefined : (millisecondsUntil(atMs, clock.nowMs()) ?? undefined);
  }
  const number = readNumberInThousandths(text);
  if (number === null) {
    const semicolon = text.indexOf(";");
    if (semicolon === -1 || text.includes(",")) return readDurationMs(text);
    return readOneResetMs(text.slice(0, semicolon).trimEnd(), { clock, unitMs, isDelay });
  }
  const unixMs = isDelay ? undefined : readUnixMs(text, number);
  if (unixMs === undefined) return unitMs === 1 ? Math.ceil(number / 1_000) : number;
  if (unixMs >= Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return millisecondsUntil(unixMs, clock.nowMs()) ?? undefined;
}
