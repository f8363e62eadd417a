import type { Limits, Rate } from "politely";
import { durationMs, rateParts } from "../policy/rateParts.js";

/** What limits say, for people and as a number. */
export interface ShortLimits {
  /** `"2/s, concurrency 4"`; `"no limit"`. */
  readonly text: string;
  /** Something holds the host back, if only after a 429. */
  readonly isLimited: boolean;
  /** A site in trouble is left alone for a while: its backoff is not `none`. */
  readonly isBackingOff: boolean;
  /** Starts a second in the long run; absent where nothing but concurrency limits them. */
  readonly perSec?: number;
}

const QUOTAS_MS = { hour: 3_600_000, day: 86_400_000, month: 30 * 86_400_000 } as const;

/** The limits of a host in a few words. */
export function shortLimits(limits: Limits | undefined): ShortLimits {
  if (limits === undefined || limits.enabled === false)
    return { text: "no limit", isLimited: false, isBackingOff: false };
  const { minDelay, rate, burst, window, quota, concurrency, backoff } = limits;
  const windows: readonly Rate[] = window === undefined ? [] : Array.isArray(window) ? window : [window as Rate];
  const parts = [
    minDelay === undefined || minDelay === 0 ? [] : [`${durationWord(minDelay)} apart`],
    rate === undefined ? [] : [`${rateWord(rate)}${burst === undefined || burst === 1 ? "" : ` burst ${burst}`}`],
    windows.map((each) => `${rateWord(each)} window`),
    quota === undefined ? [] : [`${quota.count}/${quota.per} quota`],
    concurrency === undefined ? [] : [`concurrency ${concurrency}`],
  ].flat();
  const speeds = [
    minDelay === undefined || durationMs(minDelay) === 0 ? [] : [1_000 / durationMs(minDelay)],
    [...(rate === undefined ? [] : [rate]), ...windows].map(speedOf),
    quota === undefined ? [] : [(quota.count * 1_000) / QUOTAS_MS[quota.per]],
  ].flat();
  const perSec = Math.min(...speeds);
  return {
    text: parts.length === 0 ? "no limit" : parts.join(", "),
    isLimited: true,
    isBackingOff: (typeof backoff === "object" ? backoff.kind : backoff) !== "none",
    ...(Number.isFinite(perSec) && perSec > 0 ? { perSec } : {}),
  };
}

function rateWord(rate: Rate): string {
  return typeof rate === "string" ? rate : `${rate.count}/${durationWord(rate.per)}`;
}

function durationWord(duration: number | string): string {
  return typeof duration === "number" ? `${duration} ms` : duration;
}

function speedOf(rate: Rate): number {
  const { count, perMs } = rateParts(rate);
  return (count * 1_000) / perMs;
}
