import type { Bucket } from "./bucket.js";
import type { BucketField, BucketFields } from "./collectFields.js";
import { type Count, readCounts } from "./counts.js";
import { noCount, readCount, readUsed, splitAtCommas, unknownCount } from "./fieldValue.js";
import { type QuotaPolicy, windowOfLimit } from "./quotaPolicy.js";
import { type ResetReading, readResetMs } from "./resetValue.js";
import type { ServerClock } from "./serverClock.js";
import { summaryBuckets } from "./summaryBuckets.js";
import { readWindowMs, readWrittenWindowMs } from "./timeSpan.js";

/** What is known besides the fields of the bucket. */
export interface BucketContext {
  readonly clock: ServerClock;
  /** What a small number in a reset counts: 1,000 or 1. */
  readonly resetUnitMs: number;
  readonly policies: readonly QuotaPolicy[];
}

/** The buckets that fields of one family and dimension state: one, or several where a value is a list. */
export interface StatedBuckets {
  readonly buckets: readonly Bucket[];
  /** Policies found in the limit itself. */
  readonly policies: readonly QuotaPolicy[];
  /** A limit or what remains is written in a way that nobody can read. */
  readonly isMalformed: boolean;
}

const none: StatedBuckets = { buckets: [], policies: [], isMalformed: false };

/** Strava's and Polar's two windows, which their headers do not name: a quarter of an hour and a day. */
const usageWindowsMs = [900_000, 86_400_000];

/** Reads the fields of one bucket. Never throws; what cannot be read counts as absent, and is said. */
export function readStatedBuckets(fields: BucketFields, context: BucketContext): StatedBuckets {
  const { limit, remaining, used } = fields.byRole;
  if (limit === undefined && remaining === undefined) {
    const summary = summaryBuckets(fields, context.clock);
    if (summary !== undefined) return { ...none, buckets: summary };
  }
  const limitCount = countIn(limit);
  const remainingCount = countIn(remaining);
  const usedCount = used === undefined ? unknownCount : readUsed(used.text);
  if (limitCount === noCount || remainingCount === noCount || usedCount === noCount) return readLists(fields, context);

  const policyWindowMs = explicitWindowMs(fields) ?? policyWindow(fields, context.policies, limitCount);
  const bucket = makeBucket(fields, {
    limit: limitCount,
    remaining: remaining === undefined ? leftOf(limitCount, usedCount) : remainingCount,
    resetMs: resetOf(fields, context),
    policyWindowMs,
  });
  return isBelievable(fields, bucket) ? { buckets: [bucket], policies: [], isMalformed: false } : none;
}

/** Several numbers in one field, numbers with parameters, or something that is no number. */
function readLists(fields: BucketFields, context: BucketContext): StatedBuckets {
  const limits = readCounts(fields.byRole.limit?.text);
  const remainings = readCounts(fields.byRole.remaining?.text);
  const useds = readCounts(fields.byRole.used?.text, readUsed);
  // AspNetCoreRateLimit writes the window in the place of the limit.
  const writtenMs = limits === undefined ? readWrittenWindowMs(fields.byRole.limit?.text ?? "") : undefined;
  const isLimitBad = limits === undefined && writtenMs === undefined;
  const isRemainingBad = remainings === undefined || (useds === undefined && remainings.length === 0);

  const rows = rowsOf(limits ?? [], remainings ?? [], useds ?? []);
  const resets = splitResets(fields.byRole.reset, rows.length);
  const own = (limits ?? []).slice(1).filter(({ windowMs }) => windowMs !== undefined);
  const policies = rows.length > 1 ? [] : own.map(toPolicy).filter((policy) => policy !== undefined);
  const known = context.policies.length > 0 ? context.policies : policies;

  const buckets = rows.map((row, i) =>
    makeBucket(fields, {
      limit: row.limit,
      remaining: row.remaining ?? leftOf(row.limit, row.used),
      resetMs: resets === undefined ? resetOf(fields, context) : readResetMs(resets[i], readingOf(fields, context)),
      policyWindowMs: row.windowMs ?? explicitWindowMs(fields) ?? writtenMs ?? policyWindow(fields, known, row.limit),
    }),
  );
  return {
    buckets: buckets.filter((bucket) => isBelievable(fields, bucket)),
    policies,
    isMalformed: isLimitBad || isRemainingBad,
  };
}

interface Row {
  readonly limit: number;
  /** Undefined when the field is not there: what is unknown is not reckoned from the others. */
  readonly remaining: number | undefined;
  readonly used: number;
  readonly windowMs: number | undefined;
}

/** Which numbers of the three lists belong together. */
function rowsOf(limits: readonly Count[], remainings: readonly Count[], useds: readonly Count[]): Row[] {
  const isPairs = limits.length > 0 && limits.every(({ isPair }) => isPair);
  const length = isPairs ? limits.length : Math.max(remainings.length, useds.length, 1);
  return Array.from({ length }, (_, i) => {
    const limit = isPairs || limits.length === length ? limits[i] : limits[0];
    const sameWindow = ({ windowMs }: Count): boolean => windowMs === limit?.windowMs;
    const used = isPairs ? useds.find(sameWindow) : useds[i];
    const remaining = isPairs ? remainings.find(sameWindow) : remainings[i];
    const isUsage = limits.length === 2 && useds.length === 2 && !isPairs;
    return {
      limit: limit?.value ?? unknownCount,
      remaining: remaining?.value,
      used: used?.value ?? unknownCount,
      windowMs: limit?.windowMs ?? remaining?.windowMs ?? (isUsage ? usageWindowsMs[i] : undefined),
    };
  });
}

function toPolicy({ value, windowMs }: Count): QuotaPolicy | undefined {
  return value < 0 || windowMs === undefined ? undefined : { limit: value, windowMs };
}

/** One reset for each of several buckets, where there are as many; undefined when all share what the field says. */
function splitResets(reset: BucketField | undefined, count: number): string[] | undefined {
  if (reset === undefined || count < 2) return undefined;
  const parts = splitAtCommas(reset.text);
  // The comma of a date is not between two of them.
  return parts.length === count && parts.every((part) => /^\d/.test(part)) ? parts : undefined;
}

interface BucketNumbers {
  /** -1 when unknown, as for what remains. */
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number | undefined;
  readonly policyWindowMs: number | undefined;
}

function makeBucket(fields: BucketFields, { limit, remaining, resetMs, policyWindowMs }: BucketNumbers): Bucket {
  const { byRole, first, windowMs } = fields;
  return {
    name: first.dimension === "" ? undefined : first.dimension,
    limit: limit < 0 ? undefined : limit,
    remaining: remaining < 0 ? undefined : remaining,
    resetMs,
    policyWindowMs: policyWindowMs ?? windowMs,
    unit: undefined,
    label: (byRole.remaining ?? byRole.limit)?.name.label ?? first.label,
  };
}

/** A name that proves little needs a limit and what remains of it; a shy one needs company. */
function isBelievable({ first, byRole }: BucketFields, bucket: Bucket): boolean {
  if (first.isUnproven) return bucket.limit !== undefined && bucket.remaining !== undefined;
  if (bucket.limit !== undefined || bucket.remaining !== undefined) return true;
  return bucket.resetMs !== undefined && (byRole.resetAfter ?? byRole.reset)?.name.isShy === false;
}

/** `unknownCount` when absent, `noCount` when it is not one plain number. */
function countIn(field: BucketField | undefined): number {
  return field === undefined ? unknownCount : readCount(field.text);
}

function leftOf(limit: number, used: number): number {
  return limit < 0 || used < 0 ? unknownCount : Math.max(0, limit - used);
}

function resetOf(fields: BucketFields, context: BucketContext): number | undefined {
  const { resetAfter, reset } = fields.byRole;
  const afterMs =
    resetAfter === undefined
      ? undefined
      : readResetMs(resetAfter.text, {
          clock: context.clock,
          unitMs: resetAfter.name.unitMs ?? context.resetUnitMs,
          isDelay: true,
        });
  if (afterMs !== undefined || reset === undefined) return afterMs;
  return readResetMs(reset.text, readingOf(fields, context));
}

function readingOf({ byRole: { reset } }: BucketFields, { clock, resetUnitMs }: BucketContext): ResetReading {
  return { clock, unitMs: reset?.name.unitMs ?? resetUnitMs, isDelay: false };
}

function explicitWindowMs({ byRole: { window } }: BucketFields): number | undefined {
  return window === undefined ? undefined : readWindowMs(window.text, window.name.unitMs ?? 1_000);
}

/** Policies describe the fields of the drafts; those of others only where the quota is the same. */
function policyWindow({ first }: BucketFields, policies: readonly QuotaPolicy[], limit: number): number | undefined {
  if (policies.length === 0 || first.rank === "vendor") return undefined;
  return windowOfLimit(policies, limit < 0 ? undefined : limit, first.rank === "triple");
}
