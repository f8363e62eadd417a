import type { TraceInstant } from "politely/testing";

const MICROSECOND_MS = 0.001;
// Below: seconds since 1970, up to the year 5138. Then milliseconds, microseconds, nanoseconds.
const MAX_SECONDS = 1e11;
const MAX_MILLISECONDS = 1e14;
const MAX_MICROSECONDS = 1e17;

const iso = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/**
 * Reads an ISO 8601 stamp as the time it leaves open: a whole second is any moment of that second, milliseconds any of that one.
 *
 * From microseconds on it is a moment. Without a zone it is UTC. Undefined for what is no such stamp.
 */
export function isoInstant(text: string): TraceInstant | undefined {
  const match = text.length > 64 ? null : iso.exec(text.trim());
  if (match === null) return undefined;
  const [, day, minutes, seconds, fraction = "", zone = "Z"] = match;
  if (seconds === undefined && fraction !== "") return undefined;
  const wholeMs = Date.parse(`${day}T${minutes}${seconds ?? ":00"}${zoneText(zone)}`);
  if (Number.isNaN(wholeMs) || !isDay(day)) return undefined;
  const fromMs = wholeMs + (fraction === "" ? 0 : Number(`0.${fraction}`) * 1000);
  return open(fromMs, seconds === undefined ? 60_000 : 1000 / 10 ** fraction.length);
}

/** Reads a number of milliseconds. A whole one is any moment of that millisecond. */
export function millisecondsInstant(ms: number): TraceInstant {
  if (Number.isInteger(ms)) return [ms, ms + 1];
  // Since 1970, adding up a clock's zero and its reading may round the last microsecond either way.
  return Math.abs(ms) < MAX_SECONDS ? ms : [ms - MICROSECOND_MS, ms + 2 * MICROSECOND_MS];
}

/** Reads a number since 1970 whose unit its size tells: seconds, milliseconds, microseconds or nanoseconds. */
export function epochInstant(value: number): TraceInstant | undefined {
  if (!Number.isFinite(value) || value < 0) return undefined;
  if (value < MAX_SECONDS) {
    const decimals = /\.(\d+)$/.exec(String(value))?.[1].length ?? 0;
    return open(value * 1000, 1000 / 10 ** decimals);
  }
  if (value < MAX_MILLISECONDS) return millisecondsInstant(value);
  return value < MAX_MICROSECONDS ? value / 1e3 : value / 1e6;
}

const clf = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Reads the stamp of an access log, `31/Jan/2026:10:00:00 +0100`, as milliseconds since 1970; NaN for what is none. It stands for the whole second. */
export function accessStampMs(text: string): number {
  const match = clf.exec(text);
  if (match === null) return Number.NaN;
  const [, day, month, year, time, zone] = match;
  const number = String(months.indexOf(month) + 1).padStart(2, "0");
  const date = `${year}-${number}-${day}`;
  return isDay(date) ? Date.parse(`${date}T${time}${zoneText(zone)}`) : Number.NaN;
}

/** Date.parse takes the 31st of February for the 3rd of March. */
function isDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date);
}

/** The moments at which something ended that began so and took so long. What is logged as a length is rounded somehow: a millisecond either way. */
export function endInstant(started: TraceInstant, tookMs: number): TraceInstant {
  const { fromMs, untilMs } = ends(started);
  return [Math.max(fromMs, fromMs + tookMs - 1), untilMs + tookMs + 1];
}

/** Any moment from the first of one instant to the last of another. */
export function between(started: TraceInstant, ended: TraceInstant): TraceInstant {
  const { fromMs } = ends(started);
  return [fromMs, Math.max(ends(ended).untilMs, fromMs + MICROSECOND_MS)];
}

function ends(instant: TraceInstant): { readonly fromMs: number; readonly untilMs: number } {
  const [fromMs, untilMs] = typeof instant === "number" ? [instant, instant + MICROSECOND_MS] : instant;
  return { fromMs, untilMs };
}

function open(fromMs: number, lengthMs: number): TraceInstant {
  return lengthMs <= MICROSECOND_MS ? fromMs : [fromMs, fromMs + lengthMs];
}

/** The zone as every engine reads it: `+0100` and `+01` become `+01:00`. */
function zoneText(zone: string): string {
  if (zone.toUpperCase() === "Z") return "Z";
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}
