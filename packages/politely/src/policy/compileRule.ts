import type { BackoffRule, Rule } from "../core/rule.js";
import { durationUs, formatDuration } from "./duration.js";
import { readRate, readRefill, readWindow } from "./rate.js";
import { unwrap } from "./reading.js";
import type { Limits } from "./types.js";

const defaultMaxQueue = 100_000;
const defaultMaxHoldUs = 600_000_000;
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
  const gapUs = durationUs(limits.minDelay ?? 0, "minDelay", { allowZero: true });
  const burst = limits.rate === undefined ? 1 : (limits.burst ?? 1);
  const rate = limits.rate === undefined ? undefined : unwrap(readRate(limits.rate), "rate");
  const refill = rate === undefined ? { rateCount: 0, ratePerUs: 0 } : unwrap(readRefill(rate), "rate");
  const windows = asList(limits.window).map((window) => unwrap(readRate(window), "window"));
  const quota = limits.quota === undefined ? undefined : { timeZone: "UTC", ...withoutUndefined(limits.quota) };

  return {
    enabled: true,
    gapUs,
    ...refill,
    burst,
    windows: windows.map((window) => unwrap(readWindow(window), "window")),
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
    text: {
      minDelay: gapUs === 0 ? undefined : formatDuration(gapUs),
      rate: rate === undefined ? undefined : rate.text + (burst === 1 ? "" : ` burst ${burst}`),
      windows: windows.map(({ text }) => text),
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

function asList<Entry>(value: Entry | readonly Entry[] | undefined): readonly Entry[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly Entry[]) : [value as Entry];
}

/** A field that is there but undefined counts as absent, and must not hide a default. */
function withoutUndefined<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}
