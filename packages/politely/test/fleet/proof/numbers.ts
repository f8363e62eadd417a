import type { Limits } from "../../../src/index.js";
import { checkStarts, checkTokens, type LoggedStart, type StartRule, type Violation } from "../checkStarts.js";

/** Limits as numbers, of which both the limiter's policy and the oracle's rule are made. Periods are milliseconds. */
export interface Numbers {
  readonly gapMs?: number;
  readonly rate?: { readonly count: number; readonly perMs: number; readonly burst: number };
  readonly windows?: readonly { readonly count: number; readonly perMs: number }[];
  readonly places?: number;
}

/** The limits of every host, and over everything. */
export interface Book {
  readonly hosts: Readonly<Record<string, Numbers>>;
  readonly global?: Numbers;
  readonly permitTtlMs: number;
}

/** The policy that asks for a book. */
export function policyOf({ hosts, global, permitTtlMs }: Book): {
  readonly hosts: Record<string, Limits>;
  readonly global?: Limits;
} {
  const limits = (numbers: Numbers): Limits => ({ ...limitsOf(numbers), permitTtl: permitTtlMs });
  const entries = Object.entries(hosts).map(([host, numbers]) => [host, limits(numbers)] as const);
  return { hosts: Object.fromEntries(entries), ...(global === undefined ? {} : { global: limits(global) }) };
}

/** Everything in a log that breaks a book: of each host, of all together, and tokens that do not grow. */
export function violationsOf(starts: readonly LoggedStart[], { hosts, global }: Book): Violation[] {
  const own = Object.entries(hosts).flatMap(([host, numbers]) => {
    const all = starts.filter(({ key }) => key === host);
    return [...checkStarts(all, ruleOf(numbers)), ...checkTokens(all)];
  });
  const together = starts.map((start) => ({ ...start, key: "everything" }));
  return global === undefined ? own : [...own, ...checkStarts(together, ruleOf(global))];
}

/** The most units that start in `us` microseconds under these limits, apart from places. */
export function mostWithin({ gapMs = 0, rate, windows = [] }: Numbers, us: number): number {
  let most = gapMs > 0 ? 1 + us / (gapMs * 1000) : Number.POSITIVE_INFINITY;
  if (rate !== undefined) most = Math.min(most, rate.burst + (us * rate.count) / (rate.perMs * 1000));
  for (const { count, perMs } of windows) most = Math.min(most, count + (us * count) / (perMs * 1000));
  return most;
}

function limitsOf({ gapMs, rate, windows, places }: Numbers): Limits {
  return {
    ...(gapMs === undefined ? {} : { minDelay: gapMs }),
    ...(rate === undefined ? {} : { rate: { count: rate.count, per: rate.perMs }, burst: rate.burst }),
    ...(windows === undefined ? {} : { window: windows.map(({ count, perMs }) => ({ count, per: perMs })) }),
    ...(places === undefined ? {} : { concurrency: places }),
  };
}

function ruleOf({ gapMs, rate, windows = [], places }: Numbers): StartRule {
  return {
    ...(gapMs === undefined ? {} : { gapUs: gapMs * 1000 }),
    ...(rate === undefined ? {} : { rate: { count: rate.count, perUs: rate.perMs * 1000, burst: rate.burst } }),
    windows: windows.map(({ count, perMs }) => ({ count, perUs: perMs * 1000 })),
    ...(places === undefined ? {} : { concurrency: places }),
  };
}
