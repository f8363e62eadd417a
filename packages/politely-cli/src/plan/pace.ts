import type { Limits, Rate } from "politely";
import { durationMs, rateParts } from "../policy/rateParts.js";

const PERIOD_S = { hour: 3_600, day: 86_400, month: 30 * 86_400 } as const;

/**
 * The same limits, each of them with room for one more request a second.
 *
 * Counts grow by one for each second of their period, a gap becomes as much shorter, and as many more may be in flight as
 * one more a second needs. Each grows by at least one, so that nothing stays where it was.
 */
export function onePerSecondMore(limits: Limits, latencyMs: number): Limits {
  const { minDelay, rate, window, quota, concurrency, adaptive } = limits;
  return {
    ...limits,
    ...(minDelay === undefined ? {} : { minDelay: shorterGap(durationMs(minDelay)) }),
    ...(rate === undefined ? {} : { rate: faster(rate) }),
    ...(window === undefined ? {} : { window: windowsOf(limits).map(wider) }),
    ...(quota === undefined ? {} : { quota: { ...quota, count: quota.count + PERIOD_S[quota.per] } }),
    ...(concurrency === undefined ? {} : { concurrency: concurrency + Math.max(1, Math.ceil(latencyMs / 1000)) }),
    ...(typeof adaptive === "object" && adaptive.max !== undefined
      ? { adaptive: { ...adaptive, max: faster(adaptive.max) } }
      : {}),
  };
}

function windowsOf({ window }: Limits): readonly Rate[] {
  if (window === undefined) return [];
  return Array.isArray(window) ? (window as readonly Rate[]) : [window as Rate];
}

/** In whole microseconds, so that no digit is lost. */
function shorterGap(gapMs: number): number {
  return Math.ceil((gapMs * 1_000_000) / (gapMs + 1_000)) / 1_000;
}

/** Rounded to a millionth, so that the bucket can count it in whole numbers. */
function faster(rate: Rate): Rate {
  const { count, perMs } = rateParts(rate);
  // Per second, whatever it was per: the rate is what matters, and a bucket keeps its burst.
  return { count: Math.round(((count * 1_000) / perMs + 1) * 1e6) / 1e6, per: 1_000 };
}

function wider(window: Rate): Rate {
  const { count, perMs } = rateParts(window);
  return { count: count + Math.max(1, Math.round(perMs / 1_000)), per: perMs };
}
