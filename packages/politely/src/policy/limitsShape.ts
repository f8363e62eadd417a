import { readDuration } from "./duration.js";
import { intervalUs, isFaster, maxUnits, readRate, readRefill } from "./rate.js";
import { showValue } from "./showValue.js";
import type { DomainLimits, Limits } from "./types.js";
import { fieldPath, isPlainObject, type NumberShape, type ObjectShape, type Report, type Shape } from "./validate.js";

/** True or false. */
export const flag: Shape = { kind: "flag" };
/** A duration above 0. */
const longerThanZero: Shape = { kind: "duration" };
/** A duration, also 0. */
export const anyTime: Shape = { kind: "duration", allowZero: true };
/** A duration, also 0 and without an end. */
export const anyWait: Shape = { kind: "duration", allowZero: true, allowInfinity: true };
/** A part of something, from none to all of it. */
export const part: Shape = { kind: "number", isWhole: false, min: 0, max: 1 };
/** A count of requests. */
export const units: NumberShape = { kind: "number", isWhole: true, min: 1, max: maxUnits };

const bucket: Shape = { kind: "rate", use: "bucket" };
const window: Shape = { kind: "rate", use: "window" };
const backoffKind: Shape = { kind: "choice", options: ["none", "linear", "exponential"] };

const backoff: ObjectShape = {
  kind: "object",
  name: "backoff",
  fields: { kind: backoffKind, base: longerThanZero, max: longerThanZero, jitter: part },
  required: ["kind", "base", "max"],
  check: ({ base, max }, path, report) => {
    const [first, longest] = [readDuration(base), readDuration(max)];
    if (first.ok && longest.ok && first.value > longest.value) {
      report(fieldPath(path, "base"), `must not be above max ${showValue(max)}; got ${showValue(base)}`);
    }
  },
};

const quota: ObjectShape = {
  kind: "object",
  name: "quota",
  fields: {
    count: units,
    per: { kind: "choice", options: ["hour", "day", "month"] },
    timeZone: {
      kind: "text",
      what: 'the name of a time zone such as "UTC" or "Asia/Tokyo"',
      maxLength: 100,
      pattern: "^[A-Za-z]",
      test: isTimeZone,
    },
  },
  required: ["count", "per"],
};

const adaptive: ObjectShape = {
  kind: "object",
  name: "adaptive",
  fields: { min: bucket, max: bucket },
  check: ({ min, max }, path, report) => {
    const [low, high] = [readRate(min), readRate(max)];
    if (low.ok && high.ok && isFaster(low.value, high.value)) {
      report(fieldPath(path, "min"), `must not be above max ${high.value.text}; got ${low.value.text}`);
    }
  },
};

/** What the limits of one entry look like. */
export const limitsShape: ObjectShape = {
  kind: "object",
  name: "limits",
  fields: {
    enabled: flag,
    minDelay: anyTime,
    rate: bucket,
    burst: units,
    window: { kind: "either", of: [window, { kind: "list", of: window, min: 1, max: 16 }] },
    quota,
    concurrency: units,
    countFrom: { kind: "choice", options: ["start", "answer"] },
    backoff: { kind: "either", of: [backoffKind, backoff] },
    cooldown: { kind: "either", of: [anyTime, { kind: "list", of: anyTime, min: 1, max: 64 }] },
    adaptive: { kind: "either", of: [flag, adaptive] },
    maxWait: anyWait,
    maxQueue: { ...units, min: 0, allowInfinity: true },
    permitTtl: longerThanZero,
    maxHold: longerThanZero,
    maxRetryAfter: longerThanZero,
  },
  needs: { burst: "rate" },
  check: bucketTooLarge,
};

/** What such an entry looks like. */
export const domainLimitsShape: ObjectShape = {
  kind: "object",
  name: "domainLimits",
  fields: {
    requests_per_second: { ...units, isWhole: false, min: Number.MIN_VALUE, what: "a number above 0 and at most 1e12" },
    burst_capacity: units,
  },
  required: ["requests_per_second", "burst_capacity"],
  check: (entry, path, report) => {
    const { rate: written, burst } = limitsOfDomain(entry as unknown as DomainLimits);
    bucketTooLarge({ rate: written, burst }, path, (_, message) => report(fieldPath(path, "burst_capacity"), message));
    const rate = readRate(written);
    const refill = rate.ok ? readRefill(rate.value) : rate;
    if (rate.ok && !refill.ok) report(fieldPath(path, "requests_per_second"), refill.problem);
  },
};

/** Tells such an entry from the limits of a policy. */
export function isDomainLimits(value: unknown): value is DomainLimits {
  return isPlainObject(value) && ("requests_per_second" in value || "burst_capacity" in value);
}

/** Turns a valid entry into limits. */
export function limitsOfDomain({ requests_per_second: count, burst_capacity: burst }: DomainLimits): Limits {
  return { rate: { count, per: "1s" }, burst };
}

/** Finds a bucket that is too large to be counted in whole unit-microseconds. */
export function bucketTooLarge(
  { rate, burst }: { readonly rate?: unknown; readonly burst?: unknown },
  path: string,
  report: Report,
): void {
  const written = readRate(rate);
  if (!written.ok || typeof burst !== "number" || burst > maxUnits) return;
  const most = Math.floor(Number.MAX_SAFE_INTEGER / intervalUs(written.value));
  if (most < 1 || !(burst > most)) return;
  const message = `must be at most ${most} for whole numbers to count it at the rate ${written.value.text}; got ${showValue(burst)}`;
  report(fieldPath(path, "burst"), message);
}

/** Asks the calendar of the machine, which knows the IANA names. Newer engines take offsets such as +09:00 too; those are no names. */
function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: text });
    return true;
  } catch {
    return false;
  }
}
