import type { Limits } from "../../src/index.js";

/** At most `count` units per `perUs`. */
export interface WindowSpec {
  readonly count: number;
  readonly perUs: number;
}

/** A bucket of `burst` units into which `count` come back each `perUs`. */
export interface RateSpec extends WindowSpec {
  readonly burst: number;
}

/** The limits of one key in whole microseconds, as the oracle counts. What is absent does not limit. */
export interface LimitSpec {
  readonly gapUs?: number;
  readonly rate?: RateSpec;
  readonly windows?: readonly WindowSpec[];
  /** Units per calendar hour. */
  readonly hourQuota?: number;
  readonly concurrency?: number;
  readonly fromAnswer?: boolean;
  /** When a permit that was never released gives its place back. Default ten minutes. */
  readonly maxHoldUs?: number;
}

/** Ten minutes: the documented default of `maxHold`. */
export const defaultHoldUs = 600_000_000;

/** One hour, the period of the quota the oracle knows. */
export const hourUs = 3_600_000_000;

/** Writes a spec the way a user would write it in a policy. */
export function toLimits(spec: LimitSpec): Limits {
  return {
    ...(spec.gapUs === undefined ? {} : { minDelay: spec.gapUs / 1000 }),
    ...(spec.rate === undefined
      ? {}
      : { rate: { count: spec.rate.count, per: spec.rate.perUs / 1000 }, burst: spec.rate.burst }),
    ...(spec.windows === undefined || spec.windows.length === 0
      ? {}
      : { window: spec.windows.map(({ count, perUs }) => ({ count, per: perUs / 1000 })) }),
    ...(spec.hourQuota === undefined ? {} : { quota: { count: spec.hourQuota, per: "hour" as const } }),
    ...(spec.concurrency === undefined ? {} : { concurrency: spec.concurrency }),
    ...(spec.fromAnswer === true ? { countFrom: "answer" as const } : {}),
    ...(spec.maxHoldUs === undefined ? {} : { maxHold: spec.maxHoldUs / 1000 }),
  };
}

/** The heaviest single request that every limit of the specs can hold. */
export function maxCost(...specs: readonly LimitSpec[]): number {
  const bounds = specs.flatMap((spec) => [
    spec.rate?.burst ?? Number.POSITIVE_INFINITY,
    spec.hourQuota ?? Number.POSITIVE_INFINITY,
    ...(spec.windows ?? []).map(({ count }) => count),
  ]);
  return Math.min(4, ...bounds);
}
