import { collectFields, type Field, type LimitFields } from "./collectFields.js";
import type { FieldName, FieldNames, FieldRole } from "./fieldNames.js";
import { type QuotaPolicy, readPolicies, readRateLimit, windowOfLimit } from "./rateLimitField.js";
import { parseRetryAfter, readDate, readResetMs } from "./retryAfter.js";
import { type Count, readCounts, readWindowMs, splitAtCommas } from "./values.js";

/** One quota as an answer states it. What it does not say is undefined. */
export interface Bucket {
  /** What the bucket counts, or for whom: the name of its policy, or a dimension such as `requests-day`. */
  readonly name: string | undefined;
  /** Whole units. */
  readonly limit: number | undefined;
  /** Whole units; a part of one is none. */
  readonly remaining: number | undefined;
  /** Whole milliseconds from now, rounded up. */
  readonly resetMs: number | undefined;
  readonly policyWindowMs: number | undefined;
  /** What it counts when a policy says that it is not requests. */
  readonly unit: string | undefined;
  /** The family it came from, for people. */
  readonly label: string;
  /** It counts requests of the host, and neither tokens nor only a part of the requests. */
  readonly isOfHost: boolean;
}

/** How long an answer asks to stay away, and where it says so. */
export interface RetryHint {
  /** Whole milliseconds, rounded up. */
  readonly waitMs: number;
  readonly field: string;
}

/** What an answer says about limits. */
interface Quotas {
  /** The bucket that binds; undefined when there is none. */
  readonly binding: Bucket | undefined;
  /** All buckets of the family that was believed. */
  readonly buckets: readonly Bucket[];
  readonly policies: readonly QuotaPolicy[];
}

/** What an answer says about limits, and how long it asks to stay away. */
export interface Said extends Quotas {
  readonly hint: RetryHint | undefined;
}

/** How headers are read. */
export interface Reading {
  /** The names that are known. */
  readonly names: FieldNames;
  /** Our own time, in milliseconds since 1970. It is asked only when there is a field about limits. */
  readonly wallMs: () => number;
  /** What small numbers in a reset count, 1,000 or 1. */
  readonly resetUnitMs: number;
  /** Buckets of the host bind, and no others. */
  readonly isForHost: boolean;
}

/** No site has more buckets in one answer; what comes after them is skipped. */
const maxBuckets = 64;

/** Strava's and Polar's two windows, which their headers do not name: a quarter of an hour and a day. */
const usageWindowsMs = [900_000, 86_400_000];

const nothing: Quotas = { binding: undefined, buckets: [], policies: [] };

/** Digits other than 0 in one or several numbers. */
const aboveZero = /^[\d., ]*[1-9][\d., ]*$/;

/**
 * Reads what headers of any form say about limits; undefined when they say nothing. Never throws.
 *
 * Instants are measured by the `Date` of the answer when it is valid, else by our own clock. An answer with an `Age` above 0
 * came from a cache, and its quotas say nothing about now; what it asks to wait is read.
 */
export function readLimits(headers: unknown, reading: Reading): Said | undefined {
  const found = collectFields(headers, reading.names);
  return found && new Reader(found, reading).read();
}

class Reader {
  private measuredMs: number | undefined;

  constructor(
    private readonly found: LimitFields,
    private readonly reading: Reading,
  ) {}

  read(): Said {
    // Nothing else is read of an answer from a cache.
    const said = aboveZero.test(this.found.age) ? nothing : this.readQuotas();
    return { binding: said.binding, buckets: said.buckets, policies: said.policies, hint: this.readWaits() };
  }

  /** The clock that instants are measured by. Most answers hold none, so it is read when it is needed. */
  nowMs(): number {
    if (this.measuredMs !== undefined) return this.measuredMs;
    const wallMs = this.reading.wallMs();
    this.measuredMs = readDate(this.found.date, wallMs) ?? wallMs;
    return this.measuredMs;
  }

  /** The first field that asks for some time decides. If those that can be read all say zero, or a time that has passed, so does this. */
  private readWaits(): RetryHint | undefined {
    const waits = this.found.fields.filter(({ name }) => name.role === "wait");
    if (waits.length > 1) waits.sort((one, other) => one.name.order - other.name.order);
    let zero: RetryHint | undefined;
    for (const { name, text } of waits) {
      const waitMs = name.name === "retry-after" ? parseRetryAfter(text, this.nowMs()) : this.resetMs(text, name);
      if (waitMs === null || waitMs === undefined) continue;
      const hint = { waitMs, field: name.name };
      if (waitMs > 0) return hint;
      zero ??= hint;
    }
    return zero;
  }

  /**
   * Reads quotas from the first family that is there and well-formed: `RateLimit`, then `RateLimit-*`, then those of vendors,
   * then `X-RateLimit-*`. Where each is malformed, or says no more than a reset, the first that says anything is taken.
   */
  private readQuotas(): Quotas {
    const policyText = this.textOf("policy");
    const policies = policyText === undefined ? [] : readPolicies(policyText);
    const rateLimitText = this.textOf("rateLimit");
    const listed = rateLimitText === undefined ? [] : (readRateLimit(rateLimitText, policies) ?? []);
    const binding = this.binding(listed);
    if (binding !== undefined) return { binding, buckets: listed, policies };

    const groups = this.groups();
    let second: Quotas | undefined;
    for (const rank of groups.length === 0 ? [] : [0, 1, 2]) {
      const stated = groups.filter(({ first }) => first.rank === rank).map((group) => this.readGroup(group, policies));
      const buckets = stated.flatMap((each) => each.buckets);
      const binds = this.binding(buckets);
      if (binds === undefined) continue;
      const own = stated.find((each) => each.policies.length > 0)?.policies ?? [];
      const family = { binding: binds, buckets, policies: policies.length > 0 ? policies : own };
      const hasAmount = binds.limit !== undefined || binds.remaining !== undefined;
      if (hasAmount && !stated.some((each) => each.isMalformed)) return family;
      second ??= family;
    }
    return second ?? { binding: undefined, buckets: listed, policies };
  }

  private textOf(role: FieldName["role"]): string | undefined {
    return this.found.fields.find(({ name }) => name.role === role)?.text;
  }

  /** Which fields belong to one bucket. */
  private groups(): Group[] {
    const groups: Group[] = [];
    for (const field of this.found.fields) {
      const { role, key, order } = field.name;
      if (role === "wait" || role === "policy" || role === "rateLimit" || role === "resource") continue;
      if (this.reading.isForHost && !this.isOfHost(field.name)) continue;
      let group = groups.find(({ first }) => first.key === key);
      if (group === undefined) {
        if (groups.length >= maxBuckets) continue;
        group = { first: field.name, byRole: {} };
        groups.push(group);
      }
      const before = group.byRole[role as FieldRole];
      if (before === undefined || order < before.name.order) group.byRole[role as FieldRole] = field;
    }
    return groups;
  }

  /** GitHub counts each resource for itself, and names it. */
  private isOfHost({ isOfHost, rank }: FieldName): boolean {
    return isOfHost && (rank !== 2 || (this.textOf("resource") ?? "core") === "core");
  }

  private binding(buckets: readonly Bucket[]): Bucket | undefined {
    const mayBind = buckets.filter((bucket) => (this.reading.isForHost ? bucket.isOfHost : bucket.unit === undefined));
    return mayBind.reduce<Bucket | undefined>(
      (one, other) => (one === undefined || bindsMore(other, one) ? other : one),
      undefined,
    );
  }

  /** Reads the fields of one bucket, or of several where a value is a list. What cannot be read counts as absent. */
  private readGroup({ first, byRole }: Group, announced: readonly QuotaPolicy[]): Stated {
    const { summary, limit, remaining, used, reset, resetAfter, window } = byRole;
    if (summary !== undefined) {
      const found = (summary.name.summary?.(summary.text) ?? []).filter((bucket) => bucket !== undefined);
      const buckets = found.map((bucket) => ({ ...this.bucketOf(summary.name), ...bucket }));
      return { buckets, policies: [], isMalformed: false };
    }
    const [limits, remainings, useds] = [countsIn(limit), countsIn(remaining), countsIn(used)];
    // AspNetCoreRateLimit writes the window in the place of the limit.
    const writtenMs = limits === undefined && limit !== undefined ? readWindowMs(limit.text, 1_000) : undefined;
    const isLimitBad = limits === undefined && writtenMs === undefined;
    const isRemainingBad = remainings === undefined || (useds === undefined && remainings.length === 0);

    const rows = rowsOf(limits ?? [], remainings ?? [], useds ?? []);
    const policies = limits === undefined || limits.length < 2 || rows.length > 1 ? [] : policiesIn(limits);
    const known = announced.length > 0 ? announced : policies;
    const windowMs = (window && readWindowMs(window.text, window.name.unitMs ?? 1_000)) ?? writtenMs;
    const nameMs = (limit ?? remaining)?.name.windowMs ?? first.windowMs;
    const resets = reset && splitResets(reset.text, rows.length);
    const afterMs = resets === undefined && resetAfter ? this.resetMs(resetAfter.text, resetAfter.name) : undefined;
    const buckets = rows.map((row, i) => ({
      ...this.bucketOf((remaining ?? limit)?.name ?? first),
      limit: row.limit,
      remaining: row.remaining,
      resetMs: afterMs ?? (reset && this.resetMs(resets?.[i] ?? reset.text, reset.name)),
      policyWindowMs: row.policyWindowMs ?? windowMs ?? windowOfPolicy(first, known, row.limit) ?? nameMs,
    }));
    const isShy = (resetAfter ?? reset)?.name.isShy === true;
    const believed = buckets.filter((bucket) => isBelievable(bucket, first.isUnproven, isShy));
    return { buckets: believed, policies, isMalformed: believed.length > 0 && (isLimitBad || isRemainingBad) };
  }

  private bucketOf({ dimension, label, isOfHost }: FieldName): Bucket {
    const nothing = { limit: undefined, remaining: undefined, resetMs: undefined, policyWindowMs: undefined };
    return { name: dimension === "" ? undefined : dimension, ...nothing, unit: undefined, label, isOfHost };
  }

  private resetMs(text: string, { role, unitMs }: FieldName): number | undefined {
    const isWait = role === "wait";
    const isDelay = role === "resetAfter" || (isWait && unitMs === 1);
    return readResetMs(text, this, unitMs ?? (isWait ? 1_000 : this.reading.resetUnitMs), isDelay);
  }
}

/** The fields of one bucket. */
interface Group {
  readonly first: FieldName;
  readonly byRole: Partial<Record<FieldRole, Field>>;
}

/** What the fields of one bucket state. */
interface Stated {
  readonly buckets: readonly Bucket[];
  /** Policies found in the limit itself. */
  readonly policies: readonly QuotaPolicy[];
  /** A limit or what remains is written in a way that nobody can read. */
  readonly isMalformed: boolean;
}

/** Empty when the field is absent, undefined when it cannot be read. */
function countsIn(field: Field | undefined): Count[] | undefined {
  return field === undefined ? [] : readCounts(field.text, field.name.role === "used");
}

type Row = Pick<Bucket, "limit" | "remaining" | "policyWindowMs">;

/** Which numbers of the three lists belong together. */
function rowsOf(limits: readonly Count[], remainings: readonly Count[], useds: readonly Count[]): Row[] {
  const isPairs = limits.length > 0 && limits.every(({ isPair }) => isPair);
  const length = isPairs ? limits.length : Math.max(remainings.length, useds.length, 1);
  const isUsage = limits.length === 2 && useds.length === 2 && !isPairs;
  const rows: Row[] = [];
  for (let i = 0; i < length; i++) {
    const limit = isPairs || limits.length === length ? limits[i] : limits[0];
    const beside = (counts: readonly Count[]): Count | undefined =>
      isPairs ? counts.find(({ windowMs }) => windowMs === limit?.windowMs) : counts[i];
    const [remaining, used] = [beside(remainings), beside(useds)];
    // What is said to be unknown is not reckoned from the others.
    const whole = known(limit?.value);
    const spent = known(used?.value);
    const left = whole === undefined || spent === undefined ? undefined : Math.max(0, whole - spent);
    const policyWindowMs = limit?.windowMs ?? remaining?.windowMs ?? (isUsage ? usageWindowsMs[i] : undefined);
    rows.push({ limit: whole, remaining: remaining === undefined ? left : known(remaining.value), policyWindowMs });
  }
  return rows;
}

/** Below zero is unknown. */
function known(count: number | undefined): number | undefined {
  return count === undefined || count < 0 ? undefined : count;
}

/** Behind its first number a limit may have policies. */
function policiesIn(limits: readonly Count[]): QuotaPolicy[] {
  return limits
    .slice(1)
    .flatMap(({ value, windowMs }) => (value < 0 || windowMs === undefined ? [] : [{ limit: value, windowMs }]));
}

/** One reset for each of several buckets, where there are as many; undefined when all share what the field says. */
function splitResets(text: string, count: number): string[] | undefined {
  const parts = count < 2 ? [] : splitAtCommas(text);
  // The comma of a date is not between two of them.
  return parts.length === count && count > 0 && parts.every((part) => /^\d/.test(part)) ? parts : undefined;
}

/** Policies describe the fields of the drafts; those of others only where the quota is the same. */
function windowOfPolicy(
  { rank }: FieldName,
  policies: readonly QuotaPolicy[],
  limit: number | undefined,
): number | undefined {
  return policies.length === 0 || rank === 1 ? undefined : windowOfLimit(policies, limit, rank === 0);
}

/** A name that proves little needs a limit and what remains of it; a shy one needs company. */
function isBelievable({ limit, remaining, resetMs }: Bucket, isUnproven: boolean, isShy: boolean): boolean {
  if (isUnproven) return limit !== undefined && remaining !== undefined;
  return limit !== undefined || remaining !== undefined || (resetMs !== undefined && !isShy);
}

/**
 * Whether the first binds more: of empty ones that with the longest reset, else the one with the smallest share left.
 *
 * Buckets that do not say what remains, or not of how much, come after those that do. Of equals the one with less remaining
 * binds, then the one that came first.
 */
function bindsMore(bucket: Bucket, other: Bucket): boolean {
  if (bucket.remaining === undefined || other.remaining === undefined) {
    if (bucket.remaining !== undefined || other.remaining !== undefined) return bucket.remaining !== undefined;
    return bucket.limit !== undefined && other.limit === undefined;
  }
  if (bucket.remaining === 0 || other.remaining === 0) {
    if (bucket.remaining !== other.remaining) return bucket.remaining === 0;
    return (bucket.resetMs ?? -1) > (other.resetMs ?? -1);
  }
  const [share, otherShare] = [shareLeft(bucket.remaining, bucket.limit), shareLeft(other.remaining, other.limit)];
  return share === otherShare ? bucket.remaining < other.remaining : share < otherShare;
}

/** What remains as a part of the whole; more than any known share when the whole is unknown. */
function shareLeft(remaining: number, limit: number | undefined): number {
  return limit === undefined || limit === 0 ? Number.POSITIVE_INFINITY : remaining / limit;
}
