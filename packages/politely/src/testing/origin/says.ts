import type { NamedQuota } from "./limits.js";
import type { Behaviour } from "./options.js";
import type { OriginRetryAfter } from "./types.js";

/** An instant on both clocks of an origin, in milliseconds. */
export interface Instant {
  readonly nowMs: number;
  /** Of the origin's own wall clock. */
  readonly wallMs: number;
}

/** Writes `Retry-After` for a request that would be let in at `letInAtMs`; undefined leaves the field out. Infinity: nobody can know. */
export function retryAfterText(
  says: OriginRetryAfter,
  letInAtMs: number,
  { nowMs, wallMs }: Instant,
): string | undefined {
  if (typeof says === "object" && "text" in says) return says.text;
  const isKnown = letInAtMs < Number.POSITIVE_INFINITY;
  const trueMs = isKnown ? Math.max(0, letInAtMs - nowMs) : 0;
  if (typeof says === "object") return String(Math.max(0, wholeSeconds(trueMs + says.plusMs)));
  if (says === "absent" || !isKnown) return undefined;
  // A true 0 would read as "not told" while the answer was on its way.
  return says === "date" ? httpDate(wholeSeconds(wallMs + trueMs)) : String(Math.max(1, wholeSeconds(trueMs)));
}

/** Writes the fields of the families that were asked for. None when there is no limit that has something to tell. */
export function quotaFields(
  { families, resetAs }: NonNullable<Behaviour["quotaHeaders"]>,
  quotas: readonly NamedQuota[],
  { nowMs, wallMs }: Instant,
): Record<string, string> {
  const [tightest] = quotas.toSorted(byTightness);
  if (tightest === undefined) return {};
  const waitMs = ({ resetAtUs }: NamedQuota): number => Math.max(0, resetAtUs / 1_000 - nowMs);
  const windowOf = ({ windowUs }: NamedQuota): number => Math.max(1, wholeSeconds(windowUs / 1_000));
  const resetMs = waitMs(tightest);
  const resets = {
    delta: wholeSeconds(resetMs),
    epoch: wholeSeconds(wallMs + resetMs),
    "epoch-ms": Math.ceil(wallMs + resetMs - 0.000_5),
  };
  const fields: Record<string, string> = {};
  for (const [family, prefix] of [
    ["triple", "ratelimit"],
    ["x", "x-ratelimit"],
  ] as const) {
    if (!families.includes(family)) continue;
    fields[`${prefix}-limit`] = String(tightest.count);
    fields[`${prefix}-remaining`] = String(tightest.remaining);
    fields[`${prefix}-reset`] = String(resets[resetAs]);
    if (family === "triple") fields["ratelimit-policy"] = `${tightest.count};w=${windowOf(tightest)}`;
  }
  if (families.includes("list")) {
    const list = (text: (quota: NamedQuota) => string): string => quotas.map(text).join(", ");
    fields["ratelimit-policy"] = list((each) => `"${each.name}";q=${each.count};w=${windowOf(each)}`);
    fields.ratelimit = list((each) => `"${each.name}";r=${each.remaining};t=${wholeSeconds(waitMs(each))}`);
  }
  return fields;
}

/** Writes an instant of the wall clock as HTTP does, in the second it is in. */
export function httpDate(wallSeconds: number): string {
  return new Date(Math.floor(wallSeconds) * 1_000).toUTCString();
}

/** The limit with the least share remaining first; of those with the same, the one that resets last. */
function byTightness(one: NamedQuota, other: NamedQuota): number {
  return one.remaining / one.count - other.remaining / other.count || other.resetAtUs - one.resetAtUs;
}

/** Rounded up, but not for the rounding of binary fractions. */
function wholeSeconds(ms: number): number {
  return Math.ceil((ms - 0.000_5) / 1_000);
}
