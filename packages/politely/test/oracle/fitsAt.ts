import { defaultHoldUs, hourUs, type LimitSpec } from "./spec.js";
import type { Start } from "./trace.js";
import { answeredUs } from "./violations.js";

/** May a request of this cost start at this instant, after these starts and no others? */
export interface FitQuestion {
  readonly spec: LimitSpec;
  readonly starts: readonly Start[];
  readonly cost: number;
  readonly atUs: number;
  /** Wall time of instant 0, for the quota. Default 0. */
  readonly wallUs?: number;
}

/** Looks back over all starts, limit by limit. Unused starts count for no limit but concurrency, while they were in flight. */
export function fitsAt({ spec, starts, cost, atUs, wallUs = 0 }: FitQuestion): boolean {
  const { gapUs = 0, rate, windows = [], hourQuota, concurrency, fromAnswer = false, maxHoldUs = defaultHoldUs } = spec;
  const open = starts.filter((start) => answeredUs(start, maxHoldUs) > atUs);
  if (concurrency !== undefined && open.length >= concurrency) return false;

  const used = starts.filter((start) => start.unused !== true);
  const countedUs = (start: Start): number => (fromAnswer ? answeredUs(start, maxHoldUs) : start.atUs);
  if (gapUs > 0 && used.some((start) => countedUs(start) + gapUs > atUs)) return false;
  for (const { count, perUs } of windows) {
    const inside = used.filter((start) => countedUs(start) + perUs > atUs);
    if (inside.reduce((total, start) => total + start.cost, cost) > count) return false;
  }
  if (hourQuota !== undefined) {
    const hourOf = (instantUs: number): number => Math.floor((wallUs + instantUs) / hourUs);
    const inside = used.filter((start) => hourOf(start.atUs) === hourOf(atUs));
    if (inside.reduce((total, start) => total + start.cost, cost) > hourQuota) return false;
  }
  if (rate === undefined) return true;
  let units = BigInt(cost);
  for (const start of [...used].sort((a, b) => b.atUs - a.atUs)) {
    units += BigInt(start.cost);
    const allowed = BigInt(rate.burst) * BigInt(rate.perUs) + BigInt(rate.count) * BigInt(atUs - start.atUs);
    if (units * BigInt(rate.perUs) > allowed) return false;
  }
  return true;
}
