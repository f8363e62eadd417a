const MAX_LENGTH = 100;

/**
 * Reads the text of a Retry-After header: milliseconds from `wallMs` on, 0 where it says nothing usable.
 *
 * Seconds may have decimals; of several joined with commas the smallest counts, since the client may have gone by it.
 */
export function readRetryAfter(text: string, wallMs: number): number {
  const value = text.trim();
  if (value === "" || value.length > MAX_LENGTH) return 0;
  const seconds = value.split(",").map((part) => (/^\d+(\.\d+)?$/.test(part.trim()) ? Number(part) : Number.NaN));
  if (!seconds.some(Number.isNaN)) return Math.min(...seconds) * 1000;
  // Without a name of a month it is no date of HTTP, and Date.parse takes far too much for one.
  const atMs = /^[A-Za-z]{3,9},? .*[A-Za-z]{3}.*\d$|GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - wallMs);
}
