import { readThousandths, readUsed } from "./fieldValue.js";
import { readUnixMs } from "./resetValue.js";
import { millisecondsUntil, parseRetryAfter } from "./retryAfter.js";
import type { ServerClock } from "./serverClock.js";
import { readDurationMs } from "./timeSpan.js";
import { type WaitField, type WaitForm, waitFields } from "./vendorNames.js";

/** How long an answer asks to stay away, and where it says so. */
export interface RetryHint {
  /** Whole milliseconds, rounded up. */
  readonly waitMs: number;
  /** The same in whole microseconds, which keeps the parts of a millisecond of `retry-after-ms`. */
  readonly waitUs: number;
  readonly field: string;
}

/**
 * Reads the fields that ask to stay away, in the order of `waitFields`; undefined when none of them is there and usable.
 *
 * The first that asks for some time decides. If those that can be read all say zero, or a time that has passed, so does this.
 */
export function readRetryHint(waits: readonly string[] | undefined, clock: ServerClock): RetryHint | undefined {
  if (waits === undefined) return undefined;
  let zero: RetryHint | undefined;
  // The array ends with the last field that is there, and has holes where one is absent.
  for (let index = 0; index < waits.length; index++) {
    const text: string | undefined = waits[index];
    const hint = text === undefined ? undefined : readWait(text, waitFields[index], clock);
    if (hint !== undefined && hint.waitMs > 0) return hint;
    zero ??= hint;
  }
  return zero;
}

function readWait(text: string, { name, form }: WaitField, clock: ServerClock): RetryHint | undefined {
  const number = readThousandths(text);
  if (form === "milliseconds") {
    if (number === null) return undefined;
    // Thousandths saturate long before whole milliseconds do.
    const waitMs = number < Number.MAX_SAFE_INTEGER ? Math.ceil(number / 1_000) : readUsed(largestOf(text));
    return { waitMs, waitUs: number, field: name };
  }
  const waitMs = number === null ? writtenWaitMs(text, form, clock) : numberWaitMs(text, number, form, clock);
  return waitMs === null ? undefined : { waitMs, waitUs: waitMs * 1_000, field: name };
}

function numberWaitMs(text: string, thousandths: number, form: WaitForm, clock: ServerClock): number | null {
  const unixMs = form === "vendor" ? readUnixMs(largestOf(text), thousandths) : undefined;
  return unixMs === undefined ? thousandths : millisecondsUntil(unixMs, clock.nowMs());
}

function writtenWaitMs(text: string, form: WaitForm, clock: ServerClock): number | null {
  const durationMs = form === "vendor" ? readDurationMs(text) : undefined;
  return durationMs ?? parseRetryAfter(text, clock.nowMs());
}

/** Of whole numbers joined with commas the largest, as it was written. */
function largestOf(text: string): string {
  if (!text.includes(",")) return text;
  const parts = text.split(",").map((part) => part.trim());
  return parts.reduce((largest, part) => (Number(part) > Number(largest) ? part : largest));
}
