import { type Ahead, type Bucket, type Cost, type Key, ROW, type Tell } from "../key.js";
import type { Rule } from "../rule.js";

// A bucket remembers one debt: `OWED`, in unit-microseconds, as it was at `SEEN_US`. One unit owes `ratePerUs` of it, and
// `rateCount` of it are paid each microsecond. All are whole numbers, so a bucket of seven per second has room for its seventh unit.

const { OWED, SEEN_US } = ROW;

/** What is still owed at `nowUs`. A clock that steps back counts as no time passed, so it never grants extra. */
export function owedAt(rateCount: number, owed: number, seenUs: number, nowUs: number): number {
  const rest = owed - (nowUs - seenUs) * rateCount;
  return nowUs <= seenUs ? owed : rest > 0 ? rest : 0;
}

/** Any span of `t` grants at most `burst + t * rateCount / ratePerUs` units. */
export function rateReadyAt(key: Key, rule: Rule, cost: Cost, nowUs: number, ahead: Ahead, tell?: Tell): number {
  if (rule.rateCount === 0) return nowUs;
  const { words, at } = key;
  const units = cost.rate + ahead.units.rate;
  const room = (rule.burst - units) * rule.ratePerUs;
  const owed = words[at + OWED];
  // Rounded up, so that nothing starts early.
  let atUs = owed > room ? words[at + SEEN_US] + Math.ceil((owed - room) / rule.rateCount) : words[at + SEEN_US];
  // A full bucket cannot save up for those ahead: their units come out of what it holds now.
  if (room < 0) atUs = Math.max(atUs, nowUs + Math.ceil(-room / rule.rateCount));
  if (atUs > nowUs) tell?.("rate", atUs, `rate ${rule.text.rate}`);
  return atUs;
}

/** Adds units to the debt. */
export function rateTake(key: Key, bucket: Bucket, units: number, atUs: number): void {
  const { words, at } = key;
  const owed = owedAt(bucket.rateCount, words[at + OWED], words[at + SEEN_US], atUs);
  words[at + OWED] = Math.min(Number.MAX_SAFE_INTEGER, owed + units * bucket.ratePerUs);
  if (atUs > words[at + SEEN_US]) words[at + SEEN_US] = atUs;
}

/**
 * Gives back what was never spent, or with negative units owes what was spent on top.
 *
 * The starts that remain might have been granted just as late without the returned one, so what those made after it may owe alone stays owed.
 */
export function rateGiveBack(key: Key, bucket: Bucket, units: number, laterUnits: number, nowUs: number): void {
  const { words, at } = key;
  const owed = owedAt(bucket.rateCount, words[at + OWED], words[at + SEEN_US], nowUs);
  const changed = owed - units * bucket.ratePerUs;
  const least = units > 0 ? Math.min(owed, laterUnits * bucket.ratePerUs) : 0;
  words[at + OWED] = Math.min(Number.MAX_SAFE_INTEGER, Math.max(changed, least, 0));
  words[at + SEEN_US] = Math.max(words[at + SEEN_US], nowUs);
}

/** Empties the bucket, as if all of it had just been spent. */
export function rateDrain({ words, at }: Key, { burst, rateCount, ratePerUs }: Bucket, nowUs: number): void {
  if (rateCount === 0) return;
  words[at + OWED] = burst * ratePerUs;
  words[at + SEEN_US] = Math.max(words[at + SEEN_US], nowUs);
}

/** When nothing is owed any more; without a bucket nothing is. */
export function rateOwesUntil({ words, at }: Key, bucket: Bucket | undefined): number {
  if (bucket === undefined || words[at + OWED] === 0) return Number.NEGATIVE_INFINITY;
  return words[at + SEEN_US] + Math.ceil(words[at + OWED] / bucket.rateCount);
}

/** The same units of debt, measured in another rate; rounded up. */
export function owedIn(owed: number, from: Bucket, to: Bucket): number {
  if (owed <= 0) return 0;
  // The product may be beyond 2^53; rounding down there would forgive a little.
  const units = BigInt(owed) * BigInt(to.ratePerUs);
  return Math.min(Number.MAX_SAFE_INTEGER, Number((units + BigInt(from.ratePerUs) - 1n) / BigInt(from.ratePerUs)));
}

/**
 * The debt that a bucket begins with when its numbers change: the same units, plus what it grew by, until it is empty.
 *
 * So a change never lets anything be spent at once that could not have been spent before, and changes to and fro add up to no more
 * than an empty bucket. A bucket that owes nothing stays new.
 */
export function owedUnder(owed: number, from: Bucket, to: Bucket): number {
  if (owed <= 0) return 0;
  const same = owedIn(owed, from, to);
  const grown = Math.max(0, to.burst - from.burst) * to.ratePerUs;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(same, Math.min(same + grown, to.burst * to.ratePerUs)));
}
