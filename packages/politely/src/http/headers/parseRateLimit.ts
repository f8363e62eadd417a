import type { AnyHeaders } from "./collectFields.js";
import { type Bucket, readLimits } from "./quotas.js";
import type { QuotaPolicy } from "./rateLimitField.js";
import { vendorNames } from "./vendors.js";

/** How to read what headers alone do not say. */
export interface RateLimitOptions {
  /** What a number below 1e9 in a reset counts, outside of `RateLimit` itself: seconds or milliseconds. Default `"s"`. */
  readonly resetUnit?: "s" | "ms" | undefined;
}

/** One of several quotas in an answer. What it does not say is undefined. */
export interface RateLimitBucket {
  /** What is counted, or for whom: the name of the policy, or a dimension such as `requests-day`. */
  readonly name: string | undefined;
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** Whole milliseconds from now, rounded up. */
  readonly resetMs: number | undefined;
  readonly policyWindowMs: number | undefined;
  /** What is counted, when a policy says that it is not requests. Such a bucket is listed and never chosen. */
  readonly unit?: string;
}

/** What an answer says about limits. What it does not say is undefined. */
export interface RateLimit {
  /** Units of the bucket that binds: requests, or what else it counts. A whole number from 0, as is `remaining`. */
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  /** Whole milliseconds from now until the bucket resets, rounded up, from 0 to 2^53-1. */
  readonly resetMs: number | undefined;
  /** The length of the bucket's window. */
  readonly policyWindowMs: number | undefined;
  /** How long `Retry-After` and its relatives ask to stay away: whole milliseconds, rounded up, from 0 to 2^53-1. */
  readonly retryAfterMs: number | undefined;
  /** The announced policies, in order. */
  readonly policies: readonly QuotaPolicy[] | undefined;
  /** All buckets, when there are several, in the order of their fields. */
  readonly buckets: readonly RateLimitBucket[] | undefined;
}

/**
 * Reads what an answer says about limits, in the form of any draft of the `RateLimit` fields or of a vendor.
 *
 * The first well-formed family counts: `RateLimit`, `RateLimit-*`, those of vendors, `X-RateLimit-*`. Of several buckets the
 * one that binds is chosen: an empty one with the longest reset, else the one with the smallest share left. Instants are
 * measured from the `Date` of the answer when it is valid, else from `nowMs`, in milliseconds since 1970. An answer with an
 * `Age` above 0 came from a cache: its quotas are ignored, and what it asks to wait is not.
 *
 * Never throws: what cannot be read is absent, and headers that throw are empty.
 */
export function parseRateLimit(headers: AnyHeaders, nowMs: number, options?: RateLimitOptions): RateLimit {
  const resetUnitMs = options?.resetUnit === "ms" ? 1 : 1_000;
  const said = readLimits(headers, { names: vendorNames, wallMs: () => nowMs, resetUnitMs, isForHost: false });
  const { binding, buckets = [], policies = [], hint } = said ?? {};
  return {
    limit: binding?.limit,
    remaining: binding?.remaining,
    resetMs: binding?.resetMs,
    policyWindowMs: binding?.policyWindowMs,
    retryAfterMs: hint?.waitMs,
    policies: policies.length === 0 ? undefined : policies,
    buckets: buckets.length < 2 ? undefined : buckets.map(asListed),
  };
}

function asListed({ name, limit, remaining, resetMs, policyWindowMs, unit }: Bucket): RateLimitBucket {
  return { name, limit, remaining, resetMs, policyWindowMs, ...(unit === undefined ? {} : { unit }) };
}
