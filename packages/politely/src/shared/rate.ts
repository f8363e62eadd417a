// A bucket remembers one debt: `owed`, in unit-microseconds, as it was at `seenUs`. One unit owes `perUs` of it, and `count`
// of it are paid back each microsecond. All are whole numbers, so a bucket of seven per second has room for its seventh unit.

/** What is still owed at `nowUs`. A clock that steps back counts as no time passed, so it never grants extra. */
export function rateOwedAt(count: number, owed: number, seenUs: number, nowUs: number): number {
  const rest = owed - (nowUs - seenUs) * count;
  return nowUs <= seenUs ? owed : rest > 0 ? rest : 0;
}

/**
 * When `cost` units fit; at or before `seenUs` if they did then.
 *
 * Any span of `t` microseconds grants at most `burst + t * count / perUs` units. `cost` must not exceed `burst`.
 * `room` is `(burst - cost) * perUs`: what may be owed already.
 */
export function rateReadyAt(count: number, owed: number, seenUs: number, room: number): number {
  // Rounded up, so that nothing starts early. Exact, since the excess is below 2^53.
  return owed > room ? seenUs + Math.ceil((owed - room) / count) : seenUs;
}

/**
 * What is owed once `taken` of it was returned unused, after later starts took `later`.
 *
 * The starts that remain might have been granted just as late without the returned one, so what they alone may owe
 * stays owed. This gives back at most `taken`, and never so much that the remaining starts would exceed the bucket.
 */
export function rateOwedWithout(owed: number, taken: number, later: number): number {
  return Math.max(owed - taken, Math.min(owed, later), 0);
}

/**
 * The same debt under other numbers: kept in units, rounded up, plus what the bucket grew by, until it is empty.
 *
 * So a change never lets anything be spent at once that could not have been spent before, and changes to and fro add up to no more
 * than an empty bucket. A bucket that owes nothing stays new.
 */
export function rateOwedUnder(owed: number, from: BucketShape, to: BucketShape): number {
  if (owed <= 0) return 0;
  const grown = Math.max(0, to.burst - from.burst);
  // The product may be beyond 2^53; rounding down there would forgive a little.
  const units = BigInt(owed) * BigInt(to.ratePerUs);
  const same = Number((units + BigInt(from.ratePerUs) - 1n) / BigInt(from.ratePerUs));
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    Math.max(same, Math.min(same + grown * to.ratePerUs, to.burst * to.ratePerUs)),
  );
}

/** The numbers of a bucket that a debt is measured in. */
export interface BucketShape {
  readonly ratePerUs: number;
  readonly burst: number;
}
