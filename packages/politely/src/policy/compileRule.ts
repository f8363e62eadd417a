import type { BackoffRule, Rule } from "../core/rule.js";
import type { PolicyProblem } from "../errors.js";
import { durationUs, formatDuration } from "./duration.js";
import { readRate, readRefill, readWindow } from "./rate.js";
import { unwrap } from "./reading.js";
import type { Limits } from "./types.js";
import { fieldPath } from "./validate.js";

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

/** Makes limits that were found valid ready for arithmetic: whole microseconds and units, every default filled in. */
export function compileRule(limits: Limits): Rule {
  if (limits.enabled === false) return { ...offRule };
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
    maxQueue: limits.maxQueue ?? defaultMaxQueue,
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

/** Points out what is allowed and still worth a look: a burst that holds more than a minute of its rate. */
export function warningsOf(limits: Limits, path: string): readonly PolicyProblem[] {
  const { rate, burst = 1 } = limits;
  if (rate === undefined || burst === 1) return [];
  const written = unwrap(readRate(rate), "rate");
  const { rateCount, ratePerUs } = unwrap(readRefill(written), "rate");
  if (BigInt(burst) * BigInt(ratePerUs) <= BigInt(rateCount) * 60_000_000n) return [];
  const message = `should be at most what the rate ${written.text} gives in 60 s; got ${burst}. A site may take such a burst for an attack`;
  return [{ path: fieldPath(path, "burst"), message }];
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
