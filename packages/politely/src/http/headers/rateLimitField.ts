import { hasOtherDimension } from "./fieldNames.js";
import type { Bucket } from "./quotas.js";

/** A member of a structured field (RFC 9651): its values as they are written. */
export interface Member {
  /** Its name in a dictionary; empty in a list. */
  readonly key: string;
  /** The value; `?1` where a dictionary gives none. Items in brackets are one value. */
  readonly bare: string;
  /** What follows it after `;`. Of a name given twice the last value counts. */
  readonly parameters: ReadonlyMap<string, string>;
}

const key = "[a-z*][a-z\\d_.*-]*";
const bare = [
  "-?(?:\\d{1,15}(?![\\d.])|\\d{1,12}\\.\\d{1,3}(?!\\d))",
  '"(?:[ !#-[\\]-~]|\\\\["\\\\])*"',
  "[A-Za-z*][\\w!#$%&'*+.^`|~:/-]*",
  ':[A-Za-z\\d+/]*={0,2}:|\\?[01]|@-?\\d{1,15}|%"[ !#-~]*"|\\([ !#-\'*-~"]*\\)',
].join("|");
const listMember = new RegExp(`()(${bare})`, "y");
const dictionaryMember = new RegExp(`(${key})(?:=(${bare}))?`, "y");
const parameter = new RegExp(`; *(${key})(?:=(${bare}))?`, "y");
/** A comma with something behind it, or the end. */
const separator = /[ \t]*(?:,[ \t]*(?=[^ \t])|$)/y;

/**
 * Reads a list of RFC 9651, or a dictionary, in the order of its members; undefined when the text is not exactly that.
 *
 * What is in brackets, byte sequences and display strings are only read to their end. Never throws; the work is linear in the length.
 */
export function parseMembers(text: string, isDictionary: boolean): Member[] | undefined {
  const pattern = isDictionary ? dictionaryMember : listMember;
  const members: Member[] = [];
  let at = text.search(/[^ ]|$/);
  while (at < text.length) {
    const [start, name, value = "?1"] = matchAt(pattern, text, at) ?? [];
    if (start === undefined) return undefined;
    at += start.length;
    const parameters = new Map<string, string>();
    for (let found = matchAt(parameter, text, at); found !== null; found = matchAt(parameter, text, at)) {
      parameters.set(found[1], found[2] ?? "?1");
      at += found[0].length;
    }
    const end = matchAt(separator, text, at);
    if (end === null) return undefined;
    at += end[0].length;
    members.push({ key: name, bare: value, parameters });
  }
  return members;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

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

/** So many values of `RateLimit-Policy` are remembered, and none that is longer than the second. */
const maxRemembered = 256;
const maxRememberedLength = 512;
const remembered = new Map<string, readonly QuotaPolicy[]>();

/**
 * Reads `RateLimit-Policy` of any draft, in order. A member without a usable quota is left out; empty when the field is malformed.
 *
 * A site sends the same value with every answer, so what was read is remembered, and frozen.
 */
export function readPolicies(text: string): readonly QuotaPolicy[] {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const members = parseMembers(text, false) ?? [];
  const policies = Object.freeze(members.map(policyOf).filter((policy) => policy !== undefined));
  if (text.length > maxRememberedLength) return policies;
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(text, policies);
  return policies;
}

function policyOf({ bare, parameters }: Member): QuotaPolicy | undefined {
  const name = textOf(bare);
  const limit = naturalOf(bare) ?? naturalOf(parameters.get("q"));
  if (limit === undefined || (name === undefined && naturalOf(bare) === undefined)) return undefined;
  const seconds = naturalOf(parameters.get("w")) ?? 0;
  const unit = textOf(parameters.get("qu")) ?? "requests";
  return Object.freeze({
    ...(name === undefined ? {} : { name }),
    limit,
    ...(seconds === 0 ? {} : { windowMs: inMilliseconds(seconds) }),
    ...(unit === "requests" ? {} : { unit }),
  });
}

/** Reads `RateLimit` in either of its forms, the list (from draft 08 on) or the dictionary (draft 07); undefined when malformed. */
export function readRateLimit(text: string, policies: readonly QuotaPolicy[]): readonly Bucket[] | undefined {
  const listed = parseMembers(text, false)?.map((member) => listedBucket(member, policies)) ?? [];
  // A field that is malformed in one place is not to be trusted in the others.
  const buckets = listed.filter((bucket) => bucket !== undefined);
  return buckets.length > 0 && buckets.length === listed.length ? buckets : readDictionary(text, policies);
}

function listedBucket(member: Member, policies: readonly QuotaPolicy[]): Bucket | undefined {
  const { bare, parameters } = member;
  const name = textOf(bare);
  const remaining = naturalOf(parameters.get("r"));
  const seconds = naturalOf(parameters.get("t"));
  if (name === undefined || remaining === undefined || (seconds === undefined && parameters.has("t"))) return undefined;
  const { limit, windowMs, unit } = policies.find((policy) => policy.name === name) ?? policyOf(member) ?? {};
  const isOfHost = unit === undefined && !hasOtherDimension(name);
  const resetMs = seconds === undefined ? undefined : inMilliseconds(seconds);
  return { name, limit, remaining, resetMs, policyWindowMs: windowMs, unit, label: "ratelimit", isOfHost };
}

/** Reads `limit=100, remaining=99, reset=45`, also with semicolons, and with `total` and `resets`; undefined when malformed. */
export function readDictionary(text: string, policies: readonly QuotaPolicy[]): readonly Bucket[] | undefined {
  // Semicolons in place of the commas make parameters of the rest.
  const given = new Map(
    (parseMembers(text, true) ?? []).flatMap(({ key, bare, parameters }) => [...parameters, [key, bare] as const]),
  );
  const texts = [
    given.get("limit") ?? given.get("total"),
    given.get("remaining"),
    given.get("reset") ?? given.get("resets"),
  ];
  if (!texts.every((each) => each === undefined || /^-?\d/.test(each))) return undefined;
  // Below zero is unknown.
  const [limit, remaining, seconds] = texts.map((each) =>
    each === undefined || Number(each) < 0 ? undefined : Number(each),
  );
  if (limit === undefined && remaining === undefined) return undefined;
  const amounts = { limit: limit && Math.floor(limit), remaining: remaining && Math.floor(remaining) };
  const resetMs = seconds === undefined ? undefined : inMilliseconds(seconds);
  const policyWindowMs = windowOfLimit(policies, amounts.limit, true);
  return [
    { name: undefined, ...amounts, resetMs, policyWindowMs, unit: undefined, label: "ratelimit", isOfHost: true },
  ];
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

/** What exceeds 2^53-1 saturates there. A decimal of a structured field has at most three digits after its point. */
function inMilliseconds(seconds: number): number {
  return Math.min(Math.round(seconds * 1_000), Number.MAX_SAFE_INTEGER);
}

/** The text of a string or token. */
function textOf(bare: string | undefined): string | undefined {
  if (bare?.startsWith('"') === true) return bare.slice(1, -1).replace(/\\(.)/g, "$1");
  return bare !== undefined && /^[A-Za-z*]/.test(bare) ? bare : undefined;
}

/** A whole number from 0. */
function naturalOf(bare: string | undefined): number | undefined {
  return bare !== undefined && /^\d+$/.test(bare) ? Number(bare) : undefined;
}
