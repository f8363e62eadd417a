import { countText } from "../words.js";

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** Bytes in words, with three digits at most: `999 B`, `12.3 kB`, `4.5 GB`. A kilobyte has 1,000. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  // What would round to 1,000 of a unit is 1 of the next.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const text = unit === 0 || value >= 99.95 ? countText(value) : String(Math.round(value * 10) / 10);
  return `${text} ${UNITS[unit]}`;
}

/** A rate in words: `12/s`, `1.98/s`, and below one in a hundred seconds by the minute or the hour: `0.5/min`. 0 is `0/s`. */
export function rateText(perSec: number): string {
  if (!(perSec > 0)) return "0/s";
  if (perSec >= 0.0995) return `${digits(perSec)}/s`;
  if (perSec * 60 >= 0.0995) return `${digits(perSec * 60)}/min`;
  return `${digits(perSec * 3_600)}/h`;
}

/** `part` of `whole` in percent, rounded down, so that it is 100 only when all is done. Of nothing it is 100. */
export function percentText(part: number, whole: number): string {
  return `${whole === 0 ? 100 : Math.floor((part / whole) * 100)}%`;
}

function digits(value: number): string {
  if (value >= 99.5) return countText(value);
  if (value >= 9.95) return String(Math.round(value * 10) / 10);
  return String(Math.round(value * 100) / 100);
}
