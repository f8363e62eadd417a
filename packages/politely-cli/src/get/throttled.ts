import type { IncomingHttpHeaders } from "undici/types/header.js";

/** Statuses that ask to be left alone, whatever else the answer says. */
const THROTTLED: readonly number[] = [429, 418, 420, 509, 529];

/** Whether an answer asks to be left alone: 429 and the like, and 503 with Retry-After. */
export function isThrottled(status: number, headers: IncomingHttpHeaders): boolean {
  return THROTTLED.includes(status) || (status === 503 && headers["retry-after"] !== undefined);
}

/** Whether an answer says that the site is in trouble. */
export function isTrouble(status: number): boolean {
  return status >= 500 || status === 408;
}
