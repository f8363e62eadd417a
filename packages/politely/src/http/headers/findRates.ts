import { type Bucket, bindingBucket, hasAmount } from "./bucket.js";
import type { LimitFields } from "./collectFields.js";
import type { FamilyRank } from "./fieldRole.js";
import { readThousandths } from "./fieldValue.js";
import { type QuotaPolicy, readPolicies, readRateLimitField } from "./quotaPolicy.js";
import type { ServerClock } from "./serverClock.js";
import { readStatedBuckets } from "./statedBuckets.js";

/** What the fields of an answer say about quotas. */
export interface Rates {
  /** The bucket that binds; undefined when there is none. */
  readonly binding: Bucket | undefined;
  /** All buckets of the family that was believed. */
  readonly buckets: readonly Bucket[];
  readonly policies: readonly QuotaPolicy[];
}

const ranks: readonly FamilyRank[] = ["triple", "vendor", "common"];
const nothing: Rates = { binding: undefined, buckets: [], policies: [] };

/**
 * Reads quotas from the first family that is there and well-formed: `RateLimit`, then `RateLimit-*`, then those of vendors,
 * then `X-RateLimit-*`. Where each is malformed, or says no more than a reset, the first that says anything is taken.
 *
 * An answer with an `Age` above 0 came from a cache, and says nothing about now. `resetUnitMs` is what small numbers in a
 * reset count, 1,000 or 1.
 */
export function findRates(fields: LimitFields, clock: ServerClock, resetUnitMs: number): Rates {
  if (isFromCache(fields.age)) return nothing;
  const policies = fields.policy === "" ? nothing.policies : readPolicies(fields.policy);
  const listed = fields.rateLimit === "" ? undefined : readRateLimitField(fields.rateLimit, policies);
  if (listed !== undefined) {
    const binding = bindingBucket(listed);
    if (binding !== undefined) return { binding, buckets: listed, policies };
  }

  let second: Rates | undefined;
  for (const rank of ranks) {
    if (fields.buckets.length === 0) break;
    const { rates, isWhole } = readFamily(fields, rank, { clock, resetUnitMs, policies });
    if (rates.binding === undefined) continue;
    if (isWhole) return rates;
    second ??= rates;
  }
  return second ?? { binding: undefined, buckets: listed ?? [], policies };
}

function readFamily(
  fields: LimitFields,
  rank: FamilyRank,
  context: { clock: ServerClock; resetUnitMs: number; policies: readonly QuotaPolicy[] },
): { readonly rates: Rates; readonly isWhole: boolean } {
  const buckets: Bucket[] = [];
  let policies = context.policies;
  let isMalformed = false;
  for (const each of fields.buckets) {
    if (each.first.rank !== rank) continue;
    const stated = readStatedBuckets(each, context);
    buckets.push(...stated.buckets);
    if (policies.length === 0) policies = stated.policies;
    if (stated.isMalformed && stated.buckets.length > 0) isMalformed = true;
  }
  const binding = bindingBucket(buckets);
  return {
    rates: { binding, buckets, policies },
    isWhole: binding !== undefined && !isMalformed && hasAmount(binding),
  };
}

function isFromCache(age: string): boolean {
  return age !== "" && (readThousandths(age) ?? 0) > 0;
}
