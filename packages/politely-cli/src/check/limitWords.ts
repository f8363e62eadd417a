import type { Duration, Limits, Rate } from "politely";
import { durationMs, type RateParts, rateParts, unitMs } from "../policy/rateParts.js";
import { countText, durationText } from "../words.js";

/** What every host has that is not given something else. The library fills in the same. */
export const standing = { backoff: "linear", cooldown: "60s", maxQueue: 100_000, maxHold: "10min" } as const;

/**
 * Says in words what limits ask for, one sentence each, those that set the pace first. Only what is given is said;
 * limits without any pace begin with `no limit on the pace`.
 *
 * The limits must be valid: `loadPolicy` has taken them.
 */
export function limitWords(limits: Limits): readonly string[] {
  if (limits.enabled === false) return ["no limit: the entry is turned off (enabled: false)"];
  const pace = paceWords(limits);
  return [...(pace.length === 0 ? ["no limit on the pace"] : pace), ...otherWords(limits)];
}

/** Says in words what applies to a host that is not given anything else: its own limits, and what stands without being said. */
export function hostWords(limits: Limits): readonly string[] {
  if (limits.enabled === false) return limitWords(limits);
  const untold = Object.entries(standing).filter(([name]) => limits[name as keyof Limits] === undefined);
  const defaults = otherWords(Object.fromEntries(untold) as Limits).map((words) => `${words}, by default`);
  return [...limitWords(limits), ...defaults];
}

function paceWords({ minDelay = 0, rate, burst = 1, window, quota, concurrency, adaptive }: Limits): readonly string[] {
  const words: string[] = [];
  if (durationMs(minDelay) > 0) words.push(`at least ${spanText(durationMs(minDelay))} between two starts`);
  if (rate !== undefined) {
    const { count, perMs } = rateParts(rate);
    words.push(`on average ${startsText(count)} ${perText(perMs)}, at most ${countText(burst)} at once`);
  }
  const windows = window === undefined ? [] : Array.isArray(window) ? (window as readonly Rate[]) : [window as Rate];
  for (const { count, perMs } of windows.map(rateParts).map(wholeCount)) {
    words.push(`at most ${startsText(count)} in any ${singleUnit(perMs) ?? spanText(perMs)}`);
  }
  if (quota !== undefined) {
    words.push(`at most ${startsText(quota.count)} each ${quota.per} of the calendar (${quota.timeZone ?? "UTC"})`);
  }
  if (concurrency !== undefined) words.push(`at most ${countText(concurrency)} in flight at once`);
  if (adaptive !== undefined && adaptive !== false) words.push(adaptiveWords(adaptive));
  return words;
}

function adaptiveWords(adaptive: Exclude<NonNullable<Limits["adaptive"]>, false>): string {
  const { min, max } = adaptive === true ? { min: undefined, max: undefined } : adaptive;
  const bounds = [
    max === undefined ? "" : `, never faster than ${rateText(max)}`,
    min === undefined ? "" : `, never slower than ${rateText(min)}`,
  ];
  return `slows down by what the site answers${bounds.join("")}`;
}

function otherWords({
  countFrom,
  backoff,
  cooldown,
  maxWait,
  maxQueue,
  maxHold,
  permitTtl,
}: Limits): readonly string[] {
  const words: string[] = [];
  if (countFrom === "answer") words.push("gap and windows run from the answer of a request");
  if (backoff !== undefined) words.push(backoffWords(backoff));
  if (cooldown !== undefined) {
    const steps = (Array.isArray(cooldown) ? (cooldown as readonly Duration[]) : [cooldown as Duration]).map(waitText);
    words.push(`stays away ${steps.join(", ")} after a 429 without Retry-After`);
  }
  if (maxWait !== undefined) words.push(`a request waits at most ${waitText(maxWait)}`);
  if (maxQueue !== undefined) {
    words.push(
      maxQueue === Number.POSITIVE_INFINITY
        ? "any number of requests may wait"
        : `at most ${countText(maxQueue)} requests wait`,
    );
  }
  if (maxHold !== undefined) words.push(`a place not given back is free again after ${waitText(maxHold)}`);
  if (permitTtl !== undefined)
    words.push(`with a store, a place of a dead process is free after ${waitText(permitTtl)}`);
  return words;
}

const ladders = {
  linear: { kind: "linear", base: 5_000, max: 30_000 },
  exponential: { kind: "exponential", base: 5_000, max: 60_000 },
} as const;

function backoffWords(backoff: NonNullable<Limits["backoff"]>): string {
  if (backoff === "none") return "does not back off after server errors";
  const { kind, base, max, jitter = 0 } = typeof backoff === "string" ? { ...ladders[backoff], jitter: 0 } : backoff;
  if (kind === "none") return "does not back off after server errors";
  const first = durationMs(base);
  const last = durationMs(max);
  const second = Math.min(last, 2 * first);
  const steps = [first, ...(second > first ? [second] : [])].map(spanText);
  const rest = second < last ? ` … ${spanText(last)}` : "";
  const more = jitter === 0 ? "" : `, up to ${Math.round(jitter * 100)} % longer at random`;
  return `stays away ${steps.join(", ")}${rest} after server errors (${kind}${more})`;
}

function rateText(rate: Rate): string {
  const { count, perMs } = rateParts(rate);
  return `${startsText(count)} ${perText(perMs)}`;
}

/** A number of starts; fractions as they are written. */
function startsText(count: number): string {
  return `${Number.isInteger(count) ? countText(count) : count} ${count === 1 ? "start" : "starts"}`;
}

function perText(perMs: number): string {
  const unit = singleUnit(perMs);
  return unit === undefined ? `in ${spanText(perMs)}` : `per ${unit}`;
}

/** The word for one unit of time; undefined for other lengths. */
function singleUnit(ms: number): string | undefined {
  return new Map([
    [1_000, "second"],
    [60_000, "minute"],
    [3_600_000, "hour"],
    [86_400_000, "day"],
  ]).get(ms);
}

/** A window counts whole starts: 0.5 in a second is 1 in two seconds. Counts with many digits stay as they are. */
function wholeCount({ count, perMs }: RateParts): RateParts {
  for (const times of [1, 2, 3, 4, 5, 8, 10, 20, 25, 50, 100, 1_000]) {
    const whole = Math.round(count * times);
    if (Math.abs(whole - count * times) < 1e-9) return { count: whole, perMs: perMs * times };
  }
  return { count, perMs };
}

function waitText(duration: Duration): string {
  return duration === Number.POSITIVE_INFINITY ? "for ever" : spanText(durationMs(duration));
}

/** A length of time, exact: `durationText` where it does not round, else seconds or milliseconds. */
function spanText(ms: number): string {
  const text = durationText(ms);
  const parts = [...text.matchAll(/([\d.,]+) (ms|s|min|h|d)(?= |$)/g)];
  const told = parts.reduce((sum, [, count, unit]) => sum + Number(count.replaceAll(",", "")) * unitMs(unit), 0);
  if (Math.abs(told - ms) < 1e-9 * ms || ms === 0) return text;
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}
