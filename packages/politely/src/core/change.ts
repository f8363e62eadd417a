import { withinRule } from "./adaptive.js";
import { type Bucket, type Key, ROW } from "./key.js";
import { quotaUsed } from "./limits/quota.js";
import { owedAt, owedUnder } from "./limits/rate.js";
import { type LoggedStart, loggedStarts, windowAdopt, windowForget } from "./limits/window.js";
import type { Rule } from "./rule.js";

// What becomes of a key when another rule is in force for it. Debts stay; a kind of limit that is new to the key is seeded from what the
// key knows, rounded towards fewer starts.

const { FLIGHT, LAST_US, OWED, SEEN_US, UNITS, LOG } = ROW;

/** Makes a key whose block was last read under `from` count under `to`, which is in force since `atUs`. */
export function adopt(key: Key, from: Rule, to: Rule, atUs: number): void {
  const { words, at } = key;
  const hadLog = key.halves[2 * at + LOG] !== 0;
  const known = knownStarts(key, from, atUs);
  const before: Bucket | undefined = from.rateCount === 0 ? key.rest?.measure : from;
  if (to.rateCount === 0) {
    if (from.rateCount !== 0 && words[at + OWED] > 0) {
      key.needRest().measure = { rateCount: from.rateCount, ratePerUs: from.ratePerUs, burst: from.burst };
    }
  } else if (before === undefined) {
    seedBucket(key, to, known, atUs);
  } else {
    const owed = owedAt(before.rateCount, words[at + OWED], words[at + SEEN_US], atUs);
    words[at + OWED] = owedUnder(owed, before, to);
    words[at + SEEN_US] = Math.max(words[at + SEEN_US], atUs);
    if (key.rest !== undefined) key.rest.measure = undefined;
  }
  adoptWindows(key, from, to, hadLog ? [] : known, atUs);
  adoptQuota(key, from, to, known, atUs);
  const learned = key.rest?.learned;
  if (key.rest === undefined || learned === undefined) return;
  if (to.adaptive === undefined) key.rest.adaptive = undefined;
  else {
    const state = withinRule(to.adaptive, learned.state);
    key.rest.learned = { ...learned, state };
    key.rest.adaptive = key.rest.adaptive && { ...key.rest.adaptive, gapUs: state.gapUs };
  }
}

/** What starts up to now took can no longer be given back. */
export function cutTies(key: Key, atUs: number, isWhole = false): void {
  const rest = key.needRest();
  const units = key.halves[2 * key.at + UNITS];
  rest.cut = { atUs, units, isWhole: isWhole || rest.cut?.isWhole === true };
}

/** Forgets gap, bucket and windows, and with `isWhole` quota, cooldown, pause and slowdowns as well. Starts in flight go on. */
export function forgetPacing(key: Key, nowUs: number, isWhole: boolean): void {
  const { words, at } = key;
  const rest = key.needRest();
  rest.lastUs = Math.max(rest.lastUs, words[at + LAST_US]);
  words[at + LAST_US] = Number.NEGATIVE_INFINITY;
  words[at + OWED] = 0;
  rest.measure = undefined;
  rest.answeredUs = Number.NEGATIVE_INFINITY;
  windowForget(key);
  cutTies(key, nowUs, isWhole);
  if (!isWhole) return;
  rest.quotaUsed = 0;
  rest.incident = undefined;
  rest.probe = undefined;
  rest.pausedUntilUs = Number.NEGATIVE_INFINITY;
  rest.headers = undefined;
  rest.robots = undefined;
  rest.adaptive = undefined;
  rest.learned = undefined;
}

/** The starts that a key knows of: its log, or else those in flight, its debt as starts at the last one, and at least that last one. */
function knownStarts(key: Key, rule: Rule, atUs: number): LoggedStart[] {
  const { words, halves, at } = key;
  const inPlaces: LoggedStart[] = [];
  const first = key.rest?.places?.first;
  for (let place = first; place !== undefined; place = place.next) {
    inPlaces.push({ atUs: place.startedUs, units: Math.max(1, place.pendingUnits) });
  }
  const logged = loggedStarts(key);
  if (logged.length > 0) return rule.fromAnswer ? inOrder([...logged, ...inPlaces]) : logged;
  const lastUs = words[at + LAST_US];
  if (lastUs === Number.NEGATIVE_INFINITY) return inPlaces;
  const bucket: Bucket | undefined = rule.rateCount === 0 ? key.rest?.measure : rule;
  const owed = bucket === undefined ? 0 : owedAt(bucket.rateCount, words[at + OWED], words[at + SEEN_US], lastUs);
  const owedUnits = bucket === undefined ? 0 : Math.ceil(owed / bucket.ratePerUs);
  const isStale = lastUs + rule.maxHoldUs <= atUs;
  const units = Math.max(1, owedUnits, isStale ? 0 : halves[2 * at + FLIGHT]);
  const placed = inPlaces.reduce((sum, start) => sum + start.units, 0);
  return units > placed ? inOrder([...inPlaces, { atUs: lastUs, units: units - placed }]) : inPlaces;
}

function inOrder(starts: LoggedStart[]): LoggedStart[] {
  return starts.sort((a, b) => a.atUs - b.atUs);
}

/** A bucket that is new owes what it would if it had been there at the starts that are known. */
function seedBucket(key: Key, to: Bucket, known: readonly LoggedStart[], atUs: number): void {
  let owed = 0;
  let seenUs = Number.NEGATIVE_INFINITY;
  for (const start of known) {
    owed = Math.min(
      Number.MAX_SAFE_INTEGER,
      owedAt(to.rateCount, owed, seenUs, start.atUs) + start.units * to.ratePerUs,
    );
    seenUs = start.atUs;
  }
  key.words[key.at + OWED] = owedAt(to.rateCount, owed, seenUs, atUs);
  key.words[key.at + SEEN_US] = atUs;
}

function adoptWindows(key: Key, from: Rule, to: Rule, known: readonly LoggedStart[], atUs: number): void {
  const places = key.rest?.places;
  const isPending = places !== undefined && places.pendingUnits > 0;
  const hasLog = key.halves[2 * key.at + LOG] !== 0;
  // An answer may still come in while there is no window, and another window after that.
  if (to.windows.length === 0) {
    if (isPending && !hasLog) windowAdopt(key, from, [], atUs);
    return;
  }
  const pending: LoggedStart[] = [];
  for (let place = places?.first; isPending && place !== undefined; place = place.next) {
    if (place.pendingUnits > 0) pending.push({ atUs: place.startedUs, units: place.pendingUnits });
    // Those in flight that would have been counted at their answers count from their starts now.
    if (!to.fromAnswer) place.pendingUnits = 0;
  }
  if (isPending && !to.fromAnswer) places.pendingUnits = 0;
  const others = hasLog
    ? []
    : known.filter((start) => !pending.some(({ atUs: pendingUs }) => pendingUs === start.atUs));
  const more = to.fromAnswer ? others : [...others, ...pending];
  if (hasLog || more.length > 0) windowAdopt(key, to, more, atUs);
}

function adoptQuota(
  key: Key,
  { quota: from }: Rule,
  { quota: to }: Rule,
  known: readonly LoggedStart[],
  atUs: number,
): void {
  if (to === undefined || (from?.per === to.per && from.timeZone === to.timeZone)) return;
  const { calendar } = key;
  const wallMs = calendar.wallMs();
  const period = calendar.periodAt(to, wallMs);
  // What was spent of another calendar's period that is still running, and the starts known to lie in the new one.
  const carried = from === undefined ? 0 : quotaUsed(key, from);
  const inPeriod = known.filter((start) => wallMs - (atUs - start.atUs) / 1000 >= period.startsAtMs);
  const units = Math.max(
    carried,
    inPeriod.reduce((sum, start) => sum + start.units, 0),
  );
  if (units === 0 && key.rest === undefined) return;
  const rest = key.needRest();
  rest.quotaPeriod = period.index;
  rest.quotaUsed = units;
}
