import { fitRule } from "./adaptive.js";
import { bucketOf } from "./decide.js";
import { type Key, ROW } from "./key.js";
import { lastUs } from "./limits/gap.js";
import { isFollowed, looseCount, placesOf } from "./limits/places.js";
import { quotaUsed } from "./limits/quota.js";
import { owedAt, owedUnder, rateTake } from "./limits/rate.js";
import { type LoggedStart, loggedStarts, windowAdopt } from "./limits/window.js";
import type { Rule } from "./rule.js";

// What becomes of a key when another rule is in force for it. Debts stay; a kind of limit that is new to the key is seeded from what the
// key knows, rounded towards fewer starts.

const { LAST_US, OWED, SEEN_US, UNITS } = ROW;

/** Makes a key whose block was last read under `from` count under `to`, which is in force since `atUs`. */
export function adopt(key: Key, from: Rule, to: Rule, atUs: number): void {
  // Starts in flight that enter the windows at their answers.
  const pending = placesOf(key).flatMap(({ startedUs, pendingUnits: units }) =>
    units > 0 ? [{ atUs: startedUs, units }] : [],
  );
  const known = knownStarts(key, from, pending, atUs);
  const all = [...known, ...pending].sort((a, b) => a.atUs - b.atUs);
  const isByNumber =
    key.rest?.logs === undefined && bucketOf(key, from) === undefined && looseCount(key, from, atUs) > 0;
  // From now on starts have places: those that have none come to nothing by themselves.
  if (!isFollowed(from) && isFollowed(to) && looseCount(key, from, atUs) > 0)
    key.needRest().looseUs = key.words[key.at + LAST_US];
  else if (!isFollowed(to) && key.rest !== undefined) key.rest.looseUs = undefined;
  adoptBucket(key, from, to, all, atUs);
  adoptQuota(key, to, all, atUs);
  if (to.windows.length > 0) adoptWindows(key, to, known, pending, atUs);
  // An answer may still come in while there is no window, and another window after that.
  else if (pending.length > 0 && key.rest?.logs === undefined) windowAdopt(key, from, [], atUs);
  if (isByNumber && key.rest?.logs !== undefined) key.rest.seedUnits = key.halves[2 * key.at + UNITS];
  const adaptive = key.rest?.holds?.adaptive;
  if (adaptive !== undefined && to.adaptive !== undefined) fitRule(to.adaptive, adaptive);
}

/** Forgets gap, bucket and windows, and with `isWhole` quota, cooldown, pause and slowdowns as well. Starts in flight go on, and give nothing back. */
export function forgetPacing(key: Key, nowUs: number, isWhole: boolean): void {
  const { words, halves, at } = key;
  const rest = key.needRest();
  words[at + OWED] = 0;
  rest.measure = undefined;
  rest.answeredUs = Number.NEGATIVE_INFINITY;
  rest.logs = undefined;
  rest.returned = undefined;
  rest.cut = { atUs: nowUs, units: halves[2 * at + UNITS] };
  if (!isWhole) return;
  rest.quota = undefined;
  rest.holds = undefined;
}

/** The other starts that a key knows of: its log; without one those in flight and its debt, as starts at the last one, and at least that last one. */
function knownStarts(key: Key, rule: Rule, pending: LoggedStart[], atUs: number): LoggedStart[] {
  const startUs = lastUs(key);
  if (key.rest?.logs !== undefined || startUs === Number.NEGATIVE_INFINITY) return loggedStarts(key.rest?.logs);
  const { words, at } = key;
  const counted = placesOf(key).filter(({ pendingUnits }) => pendingUnits === 0);
  const known: LoggedStart[] = counted.map(({ startedUs, units }) => ({ atUs: startedUs, units }));
  const bucket = bucketOf(key, rule);
  const owed = bucket === undefined ? 0 : owedAt(bucket.rateCount, words[at + OWED], words[at + SEEN_US], startUs);
  const debt = bucket === undefined ? 0 : Math.ceil(owed / bucket.ratePerUs);
  const placed = [...known, ...pending].reduce((sum, { units }) => sum + units, 0);
  const isPlaced = [...known, ...pending].some((start) => start.atUs === startUs);
  const units = Math.max(isPlaced ? 0 : 1, debt - placed, looseCount(key, rule, atUs));
  if (units > 0) known.push({ atUs: startUs, units });
  return known;
}

/** A debt stays in the rate it was made in until there is another one. A bucket that is new owes what it would if it had been there all the time. */
function adoptBucket(key: Key, from: Rule, to: Rule, known: readonly LoggedStart[], atUs: number): void {
  const { words, at } = key;
  const before = bucketOf(key, from);
  if (to.rateCount === 0) {
    if (before === from && words[at + OWED] > 0) key.needRest().measure = from;
  } else if (before === undefined) {
    for (const start of known) rateTake(key, to, start.units, start.atUs);
  } else {
    words[at + OWED] = owedUnder(owedAt(before.rateCount, words[at + OWED], words[at + SEEN_US], atUs), before, to);
    words[at + SEEN_US] = Math.max(words[at + SEEN_US], atUs);
    if (key.rest !== undefined) key.rest.measure = undefined;
  }
}

function adoptWindows(key: Key, to: Rule, known: LoggedStart[], pending: LoggedStart[], atUs: number): void {
  const { places, logs } = key.rest ?? {};
  const more = logs === undefined ? known : [];
  // Those in flight that would have been counted at their answers count from their starts now.
  if (!to.fromAnswer && places !== undefined) {
    more.push(...pending);
    for (const place of placesOf(key)) place.pendingUnits = 0;
    places.pendingUnits = 0;
  }
  if (logs !== undefined || more.length > 0) windowAdopt(key, to, more, atUs);
}

function adoptQuota(key: Key, { quota: to }: Rule, known: readonly LoggedStart[], atUs: number): void {
  const { calendar, rest } = key;
  const from = rest?.quota;
  if (to === undefined || (from?.per === to.per && from.timeZone === to.timeZone)) return;
  const wallMs = calendar.wallMs();
  const { startsAtMs: period } = calendar.periodAt(to, wallMs);
  // What was spent of another calendar's period that is still running, or the starts known to lie in the new one.
  const inPeriod = known.filter((start) => wallMs - (atUs - start.atUs) / 1000 >= period);
  const counted = inPeriod.reduce((sum, { units }) => sum + units, 0);
  const used = Math.max(counted, from === undefined ? 0 : quotaUsed(key, from));
  if (used > 0) key.needRest().quota = { per: to.per, timeZone: to.timeZone, period, used };
}
