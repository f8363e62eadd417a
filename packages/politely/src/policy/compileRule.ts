import type { AdaptiveRule, BackoffRule, Rule, WindowRule } from "../core/rule.js";
import { maxDurationUs } from "../core/rule.js";
import type { Rate } from "../types.js";
import { durationUs, formatDuration } from "./duration.js";
import { type Refill, readRate, readRefill, readWindow } from "./rate.js";
import { unwrap } from "./reading.js";
import type { Limits } from "./types.js";

const defaultMaxQueue = 100_000;
const defaultMaxHoldUs = 600_000_000;
const defaultPermitTtlUs = 30_000_000;
const defaultCooldownUs: readonly number[] = [60_000_000];

const ladders: Readonly<Record<BackoffRule["kind"], BackoffRule>> = {
  none: { kind: "none", baseUs: 0, maxUs: 0, jitter: 0 },
  linear: { kind: "linear", baseUs: 5_000_000, maxUs: 30_000_000, jitter: 0 },
  exponential: { kind: "exponential", baseUs: 5_000_000, maxUs: 60_000_000, jitter: 0 },
};

/** A rule that limits nothing and holds nothing. */
export const offRule: Rule = {
  enabled: false,
  gapUs: 0,
  rateCount: 0,
  ratePerUs: 0,
  burst: 1,
  windows: [],
  quota: undefined,
  concurrency: Number.POSITIVE_INFINITY,
  fromAnswer: false,
  backoff: ladders.none,
  cooldownUs: defaultCooldownUs,
  maxWaitUs: Number.POSITIVE_INFINITY,
  maxQueue: defaultMaxQueue,
  maxHoldUs: defaultMaxHoldUs,
  permitTtlUs: defaultPermitTtlUs,
  adaptive: undefined,
  text: { minDelay: undefined, rate: undefined, windows: [], quota: undefined, concurrency: undefined },
};

/** Makes the limits of a host that were found valid ready for arithmetic: whole microseconds and units, every default filled in. */
export function compileRule(limits: Limits): Rule {
  return compileWith(limits, defaultMaxQueue);
}

/**
 * The same for limits that many hosts or lanes share: those of an intent, a scope or everything together.
 *
 * Without a `maxQueue` they have no bound of their own: each host bounds its queue already, and hosts must not fill one another's.
 */
export function compileSharedRule(limits: Limits): Rule {
  return compileWith(limits, Number.POSITIVE_INFINITY);
}

function compileWith(limits: Limits, maxQueueIfNone: number): Rule {
  if (limits.enabled === false) return { ...offRule, maxQueue: maxQueueIfNone };
  const fastest = compileFastest(limits);
  const gapUs = Math.max(durationUs(limits.minDelay ?? 0, "minDelay", { allowZero: true }), fastest.gapUs);
  const burst = limits.rate === undefined ? 1 : (limits.burst ?? 1);
  const rate = limits.rate === undefined ? undefined : unwrap(readRate(limits.rate), "rate");
  const refill = rate === undefined ? { rateCount: 0, ratePerUs: 0 } : unwrap(readRefill(rate, burst), "rate");
  const written = asList(limits.window).map((window) => unwrap(readRate(window), "window"));
  const windows = written.map((window) => unwrap(readWindow(window), "window"));
  const quota = limits.quota === undefined ? undefined : { ...limits.quota, timeZone: limits.quota.timeZone ?? "UTC" };

  return {
    enabled: true,
    gapUs,
    ...refill,
    burst,
    windows,
    quota,
    concurrency: limits.concurrency ?? Number.POSITIVE_INFINITY,
    fromAnswer: limits.countFrom === "answer",
    backoff: compileBackoff(limits.backoff ?? "linear"),
    cooldownUs: compileCooldown(limits.cooldown),
    maxWaitUs: durationUs(limits.maxWait ?? Number.POSITIVE_INFINITY, "maxWait", {
      allowZero: true,
      allowInfinity: true,
    }),
    maxQueue: limits.maxQueue ?? maxQueueIfNone,
    maxHoldUs: limits.maxHold === undefined ? defaultMaxHoldUs : durationUs(limits.maxHold, "maxHold"),
    permitTtlUs: limits.permitTtl === undefined ? defaultPermitTtlUs : durationUs(limits.permitTtl, "permitTtl"),
    maxRetryAfterUs: limits.maxRetryAfter === undefined ? undefined : durationUs(limits.maxRetryAfter, "maxRetryAfter"),
    adaptive: compileAdaptive(limits.adaptive, { gapUs, refill, windows }),
    text: {
      minDelay: gapUs === 0 ? undefined : formatDuration(gapUs) + (gapUs === fastest.gapUs ? fastest.text : ""),
      rate: rate === undefined ? undefined : rate.text + (burst === 1 ? "" : ` burst ${burst}`),
      windows: written.map(({ text }) => text),
      quota: quota === undefined ? undefined : `${quota.count}/${quota.per} ${quota.timeZone}`,
      concurrency: limits.concurrency === undefined ? undefined : String(limits.concurrency),
    },
  };
}

function compileBackoff(backoff: NonNullable<Limits["backoff"]>): BackoffRule {
  if (typeof backoff === "string") return ladders[backoff];
  if (backoff.kind === "none") return ladders.none;
  return {
    kind: backoff.kind,
    baseUs: durationUs(backoff.base, "backoff.base"),
    maxUs: durationUs(backoff.max, "backoff.max"),
    jitter: backoff.jitter ?? 0,
  };
}

function compileCooldown(cooldown: Limits["cooldown"]): readonly number[] {
  if (cooldown === undefined) return defaultCooldownUs;
  return asList(cooldown).map((step) => durationUs(step, "cooldown", { allowZero: true }));
}

/** The gap that `adaptive.max` asks for at all times, bursts included; 0 when there is none. */
function compileFastest({ adaptive }: Limits): { readonly gapUs: number; readonly text: string } {
  if (typeof adaptive !== "object" || adaptive.max === undefined) return { gapUs: 0, text: "" };
  const { text } = unwrap(readRate(adaptive.max), "adaptive.max");
  return { gapUs: intervalOf(adaptive.max, "adaptive.max"), text: ` (adaptive.max ${text})` };
}

/** What sets the pace of an entry. A quota does not: it may be spent as fast as the rest allows. */
interface Pace {
  readonly gapUs: number;
  readonly refill: Refill;
  readonly windows: readonly WindowRule[];
}

function compileAdaptive(adaptive: Limits["adaptive"], { gapUs, refill, windows }: Pace): AdaptiveRule | undefined {
  if (adaptive === undefined || adaptive === false) return undefined;
  const min = adaptive === true ? undefined : adaptive.min;
  const baseUs = Math.max(
    gapUs,
    refill.rateCount === 0 ? 0 : Math.ceil(refill.ratePerUs / refill.rateCount),
    ...windows.map(({ count, perUs }) => Math.ceil(perUs / count)),
  );
  return { baseUs, slowestUs: min === undefined ? 0 : intervalOf(min, "adaptive.min") };
}

/** The mean time between two starts at a rate. */
function intervalOf(rate: Rate, name: string): number {
  const { rateCount, ratePerUs } = unwrap(readRefill(unwrap(readRate(rate), name)), name);
  return Math.min(maxDurationUs, Math.ceil(ratePerUs / rateCount));
}

function asList<Entry>(value: Entry | readonly Entry[] | undefined): readonly Entry[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly Entry[]) : [value as Entry];
}
