import type { Bucket } from "./bucket.js";
import {
  type BareItem,
  isInnerList,
  type Member,
  type Parameters,
  parseDictionary,
  parseList,
} from "./structuredFields.js";

/** A quota that a server announces in `RateLimit-Policy`, or in `RateLimit-Limit` after its first member. */
export interface QuotaPolicy {
  /** The name that `RateLimit` refers to; drafts before 08 had none. */
  readonly name?: string;
  /** Units that may be spent in a window. */
  readonly limit: number;
  /** Absent when the policy does not say it. */
  readonly windowMs?: number;
  /** What is counted, when it is not requests: `content-bytes`, `concurrent-requests`. */
  readonly unit?: string;
}

const label = "ratelimit";

/** So many values of `RateLimit-Policy` are remembered, and none that is longer than the second. */
const maxRemembered = 256;
const maxRememberedLength = 512;

const remembered = new Map<string, readonly QuotaPolicy[]>();

/**
 * Reads `RateLimit-Policy` of any draft, in order. A member without a usable quota is left out; empty when the field is malformed.
 *
 * A site sends the same value with every answer, so that what was read is remembered, and frozen.
 */
export function readPolicies(text: string): readonly QuotaPolicy[] {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const policies = (parseList(text) ?? []).map(policyOf).filter((policy) => policy !== undefined);
  Object.freeze(policies);
  if (text.length > maxRememberedLength) return policies;
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(text, policies);
  return policies;
}

/**
 * The window of a bucket whose limit is known: that of the policy with this quota, or of the only policy there is.
 *
 * `canGuess` false leaves the second out. Policies that do not count requests are passed over.
 */
export function windowOfLimit(
  policies: readonly QuotaPolicy[],
  limit: number | undefined,
  canGuess: boolean,
): number | undefined {
  const ofRequests = policies.filter(({ unit }) => unit === undefined);
  const equal = ofRequests.find((policy) => policy.limit === limit);
  if (equal !== undefined) return equal.windowMs;
  return canGuess && ofRequests.length === 1 ? ofRequests[0].windowMs : undefined;
}

/** Reads `RateLimit` in either of its forms, the list (from draft 08 on) or the dictionary (draft 07); undefined when malformed. */
export function readRateLimitField(text: string, policies: readonly QuotaPolicy[]): Bucket[] | undefined {
  const buckets = readListForm(text, policies);
  if (buckets !== undefined) return buckets;
  const bucket = readDictionaryForm(text, policies);
  return bucket && [bucket];
}

function readListForm(text: string, policies: readonly QuotaPolicy[]): Bucket[] | undefined {
  const members = parseList(text);
  if (members === undefined || members.length === 0) return undefined;
  const buckets: Bucket[] = [];
  for (const member of members) {
    const bucket = serviceLimit(member, policies);
    // A field that is malformed in one place is not to be trusted in the others.
    if (bucket === undefined) return undefined;
    buckets.push(bucket);
  }
  return buckets;
}

function serviceLimit(member: Member, policies: readonly QuotaPolicy[]): Bucket | undefined {
  const name = nameOf(member);
  if (name === undefined) return undefined;
  const remaining = naturalOf(member.parameters.get("r"));
  const resetSeconds = naturalOf(member.parameters.get("t"));
  if (remaining === undefined || (resetSeconds === undefined && member.parameters.has("t"))) return undefined;
  const isOwn = member.parameters.has("q");
  const policy =
    policies.find((each) => each.name === name) ?? (isOwn ? policyFrom(name, undefined, member.parameters) : undefined);
  return {
    name,
    limit: policy?.limit,
    remaining,
    resetMs: resetSeconds === undefined ? undefined : millisecondsOf(resetSeconds),
    policyWindowMs: policy?.windowMs,
    unit: policy?.unit,
    label,
  };
}

function readDictionaryForm(text: string, policies: readonly QuotaPolicy[]): Bucket | undefined {
  const members = parseDictionary(text);
  if (members === undefined) return undefined;
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((key) => numberIn(members, key));
  if (Number.isNaN(limit) || Number.isNaN(remaining) || Number.isNaN(reset)) return undefined;
  if (limit === undefined && remaining === undefined) return undefined;
  return {
    name: undefined,
    limit: known(limit),
    remaining: known(remaining),
    resetMs: reset === undefined || reset < 0 ? undefined : millisecondsOf(reset),
    policyWindowMs: windowOfLimit(policies, known(limit), true),
    unit: undefined,
    label,
  };
}

/** Undefined when absent, NaN when it is no number. */
function numberIn(members: ReadonlyMap<string, Member>, key: string): number | undefined {
  const member = members.get(key);
  if (member !== undefined && isInnerList(member)) return Number.NaN;
  // Some servers write semicolons in place of the commas, which makes parameters of the rest.
  const bare = member?.bare ?? members.get("limit")?.parameters.get(key);
  if (bare === undefined) return undefined;
  return bare.kind === "integer" || bare.kind === "decimal" ? bare.value : Number.NaN;
}

/** Negative numbers mean unknown. */
function known(count: number | undefined): number | undefined {
  return count === undefined || count < 0 ? undefined : Math.floor(count);
}

function policyOf(member: Member): QuotaPolicy | undefined {
  if (isInnerList(member)) return undefined;
  return policyFrom(nameOf(member), naturalOf(member.bare), member.parameters);
}

function policyFrom(
  name: string | undefined,
  bareLimit: number | undefined,
  parameters: Parameters,
): QuotaPolicy | undefined {
  const limit = bareLimit ?? naturalOf(parameters.get("q"));
  if (limit === undefined) return undefined;
  const windowSeconds = naturalOf(parameters.get("w"));
  const unit = textOf(parameters.get("qu"));
  return Object.freeze({
    ...(name === undefined ? {} : { name }),
    limit,
    ...(windowSeconds === undefined || windowSeconds === 0 ? {} : { windowMs: millisecondsOf(windowSeconds) }),
    ...(unit === undefined || unit === "requests" ? {} : { unit }),
  });
}

function nameOf(member: Member): string | undefined {
  return isInnerList(member) ? undefined : textOf(member.bare);
}

function textOf(bare: BareItem | undefined): string | undefined {
  return bare?.kind === "string" || bare?.kind === "token" ? bare.value : undefined;
}

/** What exceeds 2^53-1 saturates there. A decimal of a structured field has at most three digits after its point. */
function millisecondsOf(seconds: number): number {
  return Math.min(Math.round(seconds * 1_000), Number.MAX_SAFE_INTEGER);
}

/** A whole number from 0; undefined for anything else. */
function naturalOf(bare: BareItem | undefined): number | undefined {
  return bare?.kind === "integer" && bare.value >= 0 ? bare.value : undefined;
}
