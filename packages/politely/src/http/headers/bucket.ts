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
  /** What it counts when that is not requests, and so no limit of requests. */
  readonly unit: string | undefined;
  /** The family it came from, for people. */
  readonly label: string;
}

/** Whether the bucket says how much there is: without that, a reset is all it can give. */
export function hasAmount({ limit, remaining }: Bucket): boolean {
  return limit !== undefined || remaining !== undefined;
}

/**
 * Chooses the bucket that binds: of the empty ones that with the longest reset, else the one with the smallest share left.
 *
 * Buckets that do not say what remains, or not of how much, come after those that do. Of equals the one with less remaining
 * binds, then the first. Undefined when none of them counts requests or says anything.
 */
export function bindingBucket(buckets: readonly Bucket[]): Bucket | undefined {
  let chosen: Bucket | undefined;
  for (const bucket of buckets) {
    if (bucket.unit === undefined && (chosen === undefined || bindsMore(bucket, chosen))) chosen = bucket;
  }
  return chosen;
}

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
