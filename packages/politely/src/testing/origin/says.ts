import type { NamedQuota } from "./clientLimits.js";
import type { Behaviour, RetryAfterRule } from "./rules.js";

/** An instant on both clocks of an origin, in milliseconds. */
export interface Instant {
  readonly nowMs: number;
  /** Of the origin's own wall clock. */
  readonly wallMs: number;
}

/** Writes `Retry-After` for a request that would be let in at `letInAtMs`; undefined leaves the field out. Infinity: nobody can know. */
export function retryAfterText(
  rule: RetryAfterRule,
  letInAtMs: number,
  { nowMs, wallMs }: Instant,
): string | undefined {
  if (rule === undefined) return undefined;
  if ("text" in rule) return rule.text;
  if (rule.isTrue && letInAtMs === Number.POSITIVE_INFINITY) return undefined;
  const trueMs = letInAtMs === Number.POSITIVE_INFINITY ? 0 : Math.max(0, letInAtMs - nowMs);
  const waitMs = Math.max(0, trueMs * rule.times + rule.plusMs);
  if (rule.isDate) return httpDate(wholeSeconds(wallMs + waitMs));
  // A true 0 would read as "not told" while the answer was on its way.
  return String(Math.max(rule.isTrue ? 1 : 0, wholeSeconds(waitMs)));
}

/** Writes the fields of the families that were asked for. None when there is no limit that has something to tell. */
export function quotaFields(
  rule: NonNullable<Behaviour["quotaHeaders"]>,
  quotas: readonly NamedQuota[],
  instant: Instant,
): Record<string, string> {
  const tightest = tightestOf(quotas);
  if (tightest === undefined) return {};
  const fields: Record<string, string> = {};
  if (rule.families.includes("triple")) {
    Object.assign(fields, threeFields("ratelimit", tightest, resetText(rule.resetAs, tightest, instant)));
    fields["ratelimit-policy"] = `${tightest.count};w=${windowSeconds(tightest)}`;
  }
  if (rule.families.includes("x")) {
    Object.assign(fields, threeFields("x-ratelimit", tightest, resetText(rule.resetAs, tightest, instant)));
  }
  if (rule.families.includes("list")) {
    fields["ratelimit-policy"] = quotas
      .map((each) => `"${each.name}";q=${each.count};w=${windowSeconds(each)}`)
      .join(", ");
    fields.ratelimit = quotas
      .map((each) => `"${each.name}";r=${each.remaining};t=${resetText("delta", each, instant)}`)
      .join(", ");
  }
  return fields;
}

/** Writes an instant of the wall clock as HTTP does, in the second it is in. */
export function httpDate(wallSeconds: number): string {
  return new Date(Math.floor(wallSeconds) * 1_000).toUTCString();
}

/** The limit with the least share remaining; of those with nothing, the one that resets last. */
function tightestOf(quotas: readonly NamedQuota[]): NamedQuota | undefined {
  return quotas.reduce<NamedQuota | undefined>((tightest, each) => {
    if (tightest === undefined) return each;
    const difference = each.remaining / each.count - tightest.remaining / tightest.count;
    return difference < 0 || (difference === 0 && each.resetAtUs > tightest.resetAtUs) ? each : tightest;
  }, undefined);
}

function threeFields(prefix: string, { count, remaining }: NamedQuota, reset: string): Record<string, string> {
  return { [`${prefix}-limit`]: String(count), [`${prefix}-remaining`]: String(remaining), [`${prefix}-reset`]: reset };
}

function resetText(as: "delta" | "epoch" | "epoch-ms", quota: NamedQuota, { nowMs, wallMs }: Instant): string {
  const waitMs = Math.max(0, quota.resetAtUs / 1_000 - nowMs);
  if (as === "delta") return String(wholeSeconds(waitMs));
  return String(as === "epoch" ? wholeSeconds(wallMs + waitMs) : Math.ceil(wallMs + waitMs - 0.000_5));
}

function windowSeconds({ windowUs }: NamedQuota): number {
  return Math.max(1, wholeSeconds(windowUs / 1_000));
}

/** Rounded up, but not for the rounding of binary fractions. */
function wholeSeconds(ms: number): number {
  return Math.ceil((ms - 0.000_5) / 1_000);
}
