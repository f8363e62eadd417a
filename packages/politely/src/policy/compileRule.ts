import type { AdaptiveRule, BackoffRule, Rule } from "../core/rule.js";
import { maxDurationUs } from "../core/rule.js";
import type { Duration, Rate } from "../types.js";
import { durationUs, formatDuration } from "./duration.js";
import { intervalUs, readRate, readRefill, readWindow, type WrittenRate } from "./rate.js";
import { unwrap } from "./reading.js";
import type { Limits } from "./types.js";

const { POSITIVE_INFINITY } = Number;
const defaultMaxQueue = 100_000;

const ladders: Readonly<Record<BackoffRule["kind"], BackoffRule>> = {
  none: { kind: "none", baseUs: 0, maxUs: 0, jitter: 0 },
  linear: { kind: "linear", baseUs: 5_000_000, maxUs: 30_000_000, jitter: 0 },
  exponential: { kind: "exponential", baseUs: 5_000_000, maxUs: 60_000_000, jitter: 0 },
};

/**
 * Makes the limits of a host that were found valid ready for arithmetic: whole microseconds and units, every default filled in.
 *
 * `maxQueue` is the bound of its queue where they name none.
 */
export function compileRule(limits: Limits, maxQueue = defaultMaxQueue): Rule {
  // Turned off: what else is written does not count.
  if (limits.enabled === false) return { ...compileRule({ backoff: "none" }, maxQueue), enabled: false };
  const { rate: writtenRate, quota, adaptive, concurrency } = limits;
  // `adaptive.max` asks for its gap at all times, bursts included.
  const fastest = typeof adaptive === "object" ? adaptive.max : undefined;
  const fastestUs = fastest === undefined ? 0 : intervalOf(fastest);
  const fastestText = fastest === undefined ? "" : ` (adaptive.max ${read(fastest).text})`;
  const gapUs = Math.max(us(limits.minDelay ?? 0), fastestUs);
  const burst = writtenRate === undefined ? 1 : (limits.burst ?? 1);
  const rate = writtenRate === undefined ? undefined : read(writtenRate);
  const refill = rate === undefined ? { rateCount: 0, ratePerUs: 0 } : unwrap(readRefill(rate, burst), "rate");
  const written = asList(limits.window).map(read);
  const windows = written.map((window) => unwrap(readWindow(window), "window"));
  const zonedQuota = quota === undefined ? undefined : { ...quota, timeZone: quota.timeZone ?? "UTC" };
  // A quota sets no pace: it may be spent as fast as the rest allows.
  const paceUs = Math.max(
    gapUs,
    refill.rateCount === 0 ? 0 : Math.ceil(refill.ratePerUs / refill.rateCount),
    ...windows.map(({ count, perUs }) => Math.ceil(perUs / count)),
  );

  return {
    enabled: true,
    gapUs,
    ...refill,
    burst,
    windows,
    quota: zonedQuota,
    concurrency: concurrency ?? POSITIVE_INFINITY,
    fromAnswer: limits.countFrom === "answer",
    backoff: compileBackoff(limits.backoff ?? "linear"),
    cooldownUs: asList(limits.cooldown ?? "60s").map(us),
    maxWaitUs: us(limits.maxWait ?? POSITIVE_INFINITY),
    maxQueue: limits.maxQueue ?? maxQueue,
    maxHoldUs: us(limits.maxHold ?? "10min"),
    permitTtlUs: us(limits.permitTtl ?? "30s"),
    maxRetryAfterUs: limits.maxRetryAfter === undefined ? undefined : us(limits.maxRetryAfter),
    adaptive: compileAdaptive(adaptive, paceUs),
    text: {
      minDelay: gapUs === 0 ? undefined : formatDuration(gapUs) + (gapUs === fastestUs ? fastestText : ""),
      rate: rate === undefined ? undefined : rate.text + (burst === 1 ? "" : ` burst ${burst}`),
      windows: written.map(({ text }) => text),
      quota: zonedQuota === undefined ? undefined : `${zonedQuota.count}/${zonedQuota.per} ${zonedQuota.timeZone}`,
      concurrency: concurrency === undefined ? undefined : String(concurrency),
    },
  };
}

/**
 * The same for limits that many hosts or lanes share: those of an intent, a scope or everything together.
 *
 * Without a `maxQueue` they have no bound of their own: each host bounds its queue already, and hosts must not fill one another's.
 */
export function compileSharedRule(limits: Limits): Rule {
  return compileRule(limits, POSITIVE_INFINITY);
}

function compileBackoff(backoff: NonNullable<Limits["backoff"]>): BackoffRule {
  if (typeof backoff === "string") return ladders[backoff];
  if (backoff.kind === "none") return ladders.none;
  const { kind, base, max, jitter = 0 } = backoff;
  return { kind, baseUs: us(base), maxUs: us(max), jitter };
}

function compileAdaptive(adaptive: Limits["adaptive"], baseUs: number): AdaptiveRule | undefined {
  if (adaptive === undefined || adaptive === false) return undefined;
  const min = adaptive === true ? undefined : adaptive.min;
  return { baseUs, slowestUs: min === undefined ? 0 : intervalOf(min) };
}

/** The mean time between two starts at a rate. */
function intervalOf(rate: Rate): number {
  return Math.min(maxDurationUs, intervalUs(read(rate)));
}

function read(rate: Rate): WrittenRate {
  return unwrap(readRate(rate), "rate");
}

function us(duration: Duration): number {
  return durationUs(duration, "duration", { allowZero: true, allowInfinity: true });
}

function asList<Entry>(value: Entry | readonly Entry[] = []): readonly Entry[] {
  return Array.isArray(value) ? (value as readonly Entry[]) : [value as Entry];
}
