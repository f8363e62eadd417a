import { adaptiveUpsideDown, backoffUpsideDown, bucketTooLarge } from "./contradictions.js";
import { maxUnits } from "./rate.js";
import type { ChoiceShape, DurationShape, Field, NumberShape, ObjectShape, Shape, TextShape } from "./shape.js";

/** True or false. */
export const flag: Shape = { kind: "flag" };

const longerThanZero: DurationShape = { kind: "duration" };
/** A duration, also 0. */
export const anyTime: DurationShape = { kind: "duration", allowZero: true };
/** A duration, also 0 and without an end. */
export const anyWait: DurationShape = { kind: "duration", allowZero: true, allowInfinity: true };

const units: NumberShape = { kind: "number", isWhole: true, min: 1, max: maxUnits };

const timeZone: TextShape = {
  kind: "text",
  what: 'the name of a time zone such as "UTC" or "Asia/Tokyo"',
  maxLength: 100,
  pattern: "^[A-Za-z]",
  test: isTimeZone,
};

const backoffKind: ChoiceShape = { kind: "choice", options: ["none", "linear", "exponential"] };

const backoff: ObjectShape = {
  kind: "object",
  fields: {
    kind: { shape: backoffKind, isRequired: true, about: "How the steps grow: base × n, or base doubled each time." },
    base: { shape: longerThanZero, isRequired: true, about: "The first step." },
    max: { shape: longerThanZero, isRequired: true, about: "The longest step." },
    jitter: {
      shape: { kind: "number", isWhole: false, min: 0, max: 1 },
      about: "Lengthens each step by up to this part of itself, at random. Default 0.",
    },
  },
  checks: [backoffUpsideDown],
};

const quota: ObjectShape = {
  kind: "object",
  fields: {
    count: { shape: units, isRequired: true, about: "Units in one period." },
    per: {
      shape: { kind: "choice", options: ["hour", "day", "month"] },
      isRequired: true,
      about: "The period of the calendar after which the count begins again.",
    },
    timeZone: { shape: timeZone, about: "Whose calendar. Default UTC." },
  },
};

const adaptive: ObjectShape = {
  kind: "object",
  fields: {
    min: {
      shape: { kind: "rate", use: "bucket" },
      about: "Never slower than this. Default a 64th of full speed, and one a minute at least.",
    },
    max: {
      shape: { kind: "rate", use: "bucket" },
      about: "Never faster than this. Default: what the other limits allow.",
    },
  },
  checks: [adaptiveUpsideDown],
};

const window: Shape = { kind: "rate", use: "window" };

/** The fields of limits, for entries that have more. */
export const limitFields: Readonly<Record<string, Field>> = {
  enabled: { shape: flag, about: "false turns the limits of this entry off. Default true." },
  minDelay: { shape: anyTime, about: "The least time between two starts. Default 0: none." },
  rate: { shape: { kind: "rate", use: "bucket" }, about: "A token bucket, full at the start. Default: none." },
  burst: { shape: units, needs: "rate", about: "How many units the bucket holds. Default 1." },
  window: {
    shape: { kind: "either", of: [window, { kind: "list", of: window, min: 1, max: 16 }] },
    about: "Exact sliding windows: at most so many starts in any span of that length. Default: none.",
  },
  quota: { shape: quota, about: "A budget that begins again on the calendar. Default: none." },
  concurrency: { shape: units, about: "How many may be in flight at once. Default: no bound." },
  countFrom: {
    shape: { kind: "choice", options: ["start", "answer"] },
    about: "Whether gap and windows run from a start or from its answer. Default start.",
  },
  backoff: {
    shape: { kind: "either", of: [backoffKind, backoff] },
    about:
      "How long to stay away after server errors and timeouts; exponential is 5, 10, 20, 40, 60 s. Default linear: 5, 10, … 30 s.",
  },
  cooldown: {
    shape: { kind: "either", of: [anyTime, { kind: "list", of: anyTime, min: 1, max: 64 }] },
    about: "How long to stay away after a 429 without Retry-After; a list is a ladder. Default 60 s.",
  },
  adaptive: {
    shape: { kind: "either", of: [flag, adaptive] },
    about: "Slow down by what the site answers and how long that takes, never above the other limits. Default false.",
  },
  maxWait: { shape: anyWait, about: "The longest a request may wait in its lane. Default: no bound; 0 means never." },
  maxQueue: {
    shape: { kind: "number", isWhole: true, min: 0, max: maxUnits, allowInfinity: true },
    about:
      "How many requests may wait; 0 means none. Default 100,000 for a host; no bound for an intent, a scope and global.",
  },
  permitTtl: { shape: longerThanZero, about: "With a store: lifetime of a place. Default 30 s." },
  maxHold: { shape: longerThanZero, about: "A permit not released by then gives its place back. Default 10 min." },
  maxRetryAfter: {
    shape: longerThanZero,
    about: "Longer waits in the headers of a site are cut to this. Default 1 day.",
  },
};

/** And what they must not say together. */
export const limitChecks = [bucketTooLarge({ burst: "burst", rateOf: (entry) => entry.rate })];

/** What the limits of one entry look like. */
export const limitsShape: ObjectShape = { kind: "object", name: "limits", fields: limitFields, checks: limitChecks };

/** Asks the calendar of the machine, which knows the IANA names. Newer engines take offsets such as +09:00 too; those are no names. */
function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: text });
    return true;
  } catch {
    return false;
  }
}
