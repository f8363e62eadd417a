import { readThousandths, trimBlanks } from "./fieldValue.js";
import { parseHttpDate } from "./httpDate.js";

/**
 * Reads a `Retry-After` value as whole milliseconds from `nowMs`, rounded up; null when it is absent or unusable.
 *
 * Takes seconds, decimals included, and dates; see `parseHttpDate` for their forms. A date that is not ahead gives 0.
 * Of whole numbers joined with commas, the field sent several times, the largest counts. What exceeds 2^53-1
 * saturates there. Never throws; the work is linear in the length. `nowMs` is in milliseconds since 1970.
 */
export function parseRetryAfter(value: string | null | undefined, nowMs: number): number | null {
  const text = typeof value === "string" ? trimBlanks(value) : "";
  if (text === "") return null;
  const delayMs = readThousandths(text);
  if (delayMs !== null) return delayMs;
  const atMs = parseHttpDate(text, nowMs);
  return atMs === null ? null : millisecondsUntil(atMs, nowMs);
}

/** How long it is from `nowMs` until `atMs`: whole, rounded up, 0 when it has passed, null when `nowMs` is no time. */
export function millisecondsUntil(atMs: number, nowMs: number): number | null {
  if (!Number.isFinite(nowMs)) return null;
  return Math.min(Math.max(0, Math.ceil(atMs - nowMs)), Number.MAX_SAFE_INTEGER);
}
