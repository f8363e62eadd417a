import type { Duration, Rate } from "politely";

/** A rate taken apart. */
export interface RateParts {
  readonly count: number;
  readonly perMs: number;
}

/** The length of a valid duration in milliseconds. */
export function durationMs(duration: Duration): number {
  if (typeof duration === "number") return duration;
  const [, count, unit] = /^(\S*?) ?([a-z]+)$/.exec(duration) ?? [];
  return Number(count) * unitMs(unit);
}

/** Takes a valid rate apart. */
export function rateParts(rate: Rate): RateParts {
  if (typeof rate === "object") return { count: rate.count, perMs: durationMs(rate.per) };
  const [, count, times, unit] = /^(\S+?) ?\/ ?([\d.]\S*?)? ?([a-z]+)$/.exec(rate) ?? [];
  return { count: Number(count), perMs: Number(times ?? 1) * unitMs(unit) };
}

/** The units of a duration and the longer words that a rate may have instead. */
export function unitMs(unit: string): number {
  if (unit === "ms") return 1;
  const size = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit[0] as "s" | "m" | "h" | "d"];
  return size;
}
