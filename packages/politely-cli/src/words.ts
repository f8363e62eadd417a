const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A year of the Gregorian calendar, on average. */
const YEAR_MS = 365.2425 * DAY_MS;

/**
 * A duration in words, its two largest units, rounded: `850 ms`, `4.2 s`, `3 min 20 s`, `5 h 12 min`, `12 d 3 h`.
 *
 * From two years on it is `about 3 years`, from a million years on `more than a million years`, Infinity is `for ever`. Less than
 * a millisecond is `0 ms`; a negative duration has a minus in front, and what is no number is `unknown`.
 */
export function durationText(ms: number): string {
  if (Number.isNaN(ms)) return "unknown";
  if (ms <= -0.5) return `-${durationText(-ms)}`;
  if (ms === Number.POSITIVE_INFINITY) return "for ever";
  if (ms >= 1e6 * YEAR_MS) return "more than a million years";
  if (ms >= 2 * YEAR_MS) return `about ${countText(Math.round(ms / YEAR_MS))} years`;
  // Each unit is tried with the duration already rounded, so that 59.6 s is a minute and never 60 s.
  if (Math.round(ms) < SECOND_MS) return `${Math.max(0, Math.round(ms))} ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 100) return `${tenths / 10} s`;
  const seconds = Math.round(ms / SECOND_MS);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return pair(seconds, 60, ["min", "s"]);
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < 24 * 60) return pair(minutes, 60, ["h", "min"]);
  return pair(Math.round(ms / HOUR_MS), 24, ["d", "h"]);
}

/** A count with commas between the thousands, whatever the locale: `1,000,000`. Fractions are rounded. */
export function countText(count: number): string {
  return COUNT.format(count);
}

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `total` small units as large ones and the rest, which is left out when it is none. */
function pair(total: number, size: number, [large, small]: readonly [string, string]): string {
  const rest = total % size;
  const whole = `${countText((total - rest) / size)} ${large}`;
  return rest === 0 ? whole : `${whole} ${rest} ${small}`;
}
