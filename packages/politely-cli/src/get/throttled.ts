import { type AnyHeaders, parseRateLimit } from "politely/headers";

/** Statuses that ask to be left alone, whatever else the answer says. */
const THROTTLED: readonly number[] = [429, 418, 420, 509, 529];

/** Whether an answer asks to be left alone: 429 and the like, 503 with a usable Retry-After, and 403 with one or with nothing left of a quota. */
export function isThrottled(status: number, headers: AnyHeaders): boolean {
  if (THROTTLED.includes(status)) return true;
  if (status !== 503 && status !== 403) return false;
  const { retryAfterMs = 0, remaining } = parseRateLimit(headers, Date.now());
  return retryAfterMs > 0 || (status === 403 && remaining === 0);
}

/** Whether an answer says that the site is in trouble. */
export function isTrouble(status: number): boolean {
  return status >= 500 || status === 408;
}
