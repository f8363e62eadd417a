import type { LimitKind } from "../observe/types.js";
import { type Ahead, type Bucket, type Cost, type Key, NOBODY, type Place, ROW, type Taken, type Tell } from "./key.js";
import { gapOwesUntil, gapReadyAt, gapTake } from "./limits/gap.js";
import { holdsOweUntil, holdsReadyAt, pauseReadyAt } from "./limits/holds.js";
import { isFollowed, placesGiveBack, placesOweUntil, placesReadyAt, placesTake } from "./limits/places.js";
import { quotaGiveBack, quotaOwesUntil, quotaReadyAt, quotaTake } from "./limits/quota.js";
import { rateGiveBack, rateOwesUntil, rateReadyAt, rateTake } from "./limits/rate.js";
import { windowGiveBack, windowOwesUntil, windowReadyAt, windowTake } from "./limits/window.js";
import type { Rule } from "./rule.js";

// The one place where the limits of a key come together. Each of them has a file in limits/ that knows when it allows a start, what a
// start takes from it, what is given back, and until when it is owed.

const { FLIGHT, LAST_US, UNITS } = ROW;

/** The limit that the last `readyAt` found most binding. */
export const binding: { limit: LimitKind | undefined } = { limit: undefined };

/**
 * The instant from which a start of that cost is possible, after those `ahead`; at or before `nowUs` means now.
 *
 * Where an answer is waited for this is when it is no longer; Infinity: only an answer or a person can tell. `tell` is called for every limit
 * that stands in the way, with the earliest instant at which it might not.
 */
export function readyAt(key: Key, rule: Rule, cost: Cost, nowUs: number, ahead: Ahead = NOBODY, tell?: Tell): number {
  let atUs = nowUs;
  binding.limit = undefined;
  const holds = key.rest?.holds;
  if (holds !== undefined) {
    const pausedUs = pauseReadyAt(holds, nowUs, tell);
    if (pausedUs > atUs) [atUs, binding.limit] = [pausedUs, "pause"];
    const heldUs = rule.enabled ? holdsReadyAt(key, holds, rule, nowUs, tell) : atUs;
    if (heldUs > atUs) [atUs, binding.limit] = [heldUs, "cooldown"];
  }
  // One after the other rather than by a table: V8 makes one piece of code of it.
  const gapUs = gapReadyAt(key, rule, nowUs, ahead, tell);
  if (gapUs > atUs) [atUs, binding.limit] = [gapUs, "minDelay"];
  const rateUs = rateReadyAt(key, rule, cost, nowUs, ahead, tell);
  if (rateUs > atUs) [atUs, binding.limit] = [rateUs, "rate"];
  const windowUs = windowReadyAt(key, rule, cost, nowUs, ahead, tell);
  if (windowUs > atUs) [atUs, binding.limit] = [windowUs, "window"];
  const quotaUs = quotaReadyAt(key, rule, cost, nowUs, ahead, tell);
  if (quotaUs > atUs) [atUs, binding.limit] = [quotaUs, "quota"];
  const placesUs = placesReadyAt(key, rule, nowUs, ahead, tell);
  if (placesUs > atUs) [atUs, binding.limit] = [placesUs, "concurrency"];
  return atUs;
}

/** Counts a start that is granted now, or now for `atUs`, and holds its place. Only after a `readyAt` that allows it. */
export function take(key: Key, rule: Rule, cost: Cost, atUs: number, nowUs: number = atUs): Taken {
  const { words, halves, at } = key;
  const previousUs = words[at + LAST_US];
  const period = count(key, rule, cost, atUs, nowUs);
  let place: Place | undefined;
  if (isFollowed(rule)) place = placesTake(key, atUs, cost.window, rule.fromAnswer ? cost.window : 0);
  else halves[2 * at + FLIGHT] += 1;
  return { startedUs: atUs, previousUs, unitsAfter: halves[2 * at + UNITS], cost, place, period };
}

/** Counts a start that was made and answered without asking, as far as the past is still known. */
export function record(key: Key, rule: Rule, cost: Cost, startedUs: number, nowUs: number): void {
  count(key, rule, cost, startedUs, nowUs);
  if (rule.fromAnswer) countAnswer(key, rule, cost.window, nowUs);
}

/** Counts a start in everything but places; returns the quota's period. */
function count(key: Key, rule: Rule, cost: Cost, startedUs: number, nowUs: number): number {
  gapTake(key, startedUs);
  const bucket = bucketOf(key, rule);
  if (bucket !== undefined) rateTake(key, bucket, cost.rate, startedUs);
  key.halves[2 * key.at + UNITS] += cost.rate;
  if (!rule.fromAnswer) logStart(key, rule, startedUs, cost.window, nowUs);
  const quota = rule.quota ?? key.rest?.quota;
  return quota === undefined ? -1 : quotaTake(key, quota, cost.quota, nowUs - startedUs);
}

function logStart(key: Key, rule: Rule, atUs: number, units: number, nowUs: number): void {
  if (rule.windows.length > 0 || key.rest?.logs !== undefined) windowTake(key, rule, atUs, units, nowUs);
}

/** Where things count from the answer, gaps and windows begin with it. */
function countAnswer(key: Key, rule: Rule, units: number, nowUs: number): void {
  logStart(key, rule, nowUs, units, nowUs);
  const rest = key.needRest();
  rest.answeredUs = Math.max(rest.answeredUs, nowUs);
}

/** The bucket that a debt of the key is measured in; undefined where there is none. */
export function bucketOf(key: Key, rule: Rule): Bucket | undefined {
  return rule.rateCount === 0 ? key.rest?.measure : rule;
}

/**
 * Corrects what an open start took: `unused` less than it did, or with negative numbers more. `isWhole`: it was never sent, so the gap goes
 * back, too. Call it before `end`.
 */
export function giveBack(key: Key, rule: Rule, taken: Taken, unused: Cost, nowUs: number, isWhole: boolean): void {
  const laterUnits = unitsSince(key, taken);
  const bucket = bucketOf(key, rule);
  if (bucket !== undefined && unused.rate !== 0) {
    rateGiveBack(key, bucket, unused.rate, laterUnits - returnedSince(key, taken, laterUnits), nowUs);
  }
  if (unused.rate < 0) key.halves[2 * key.at + UNITS] -= unused.rate;
  if (laterUnits === Number.POSITIVE_INFINITY) return;
  if (isWhole) takeOut(key, taken, laterUnits);
  const isLogged = taken.place === undefined || taken.place.pendingUnits === 0;
  const { seedUnits = taken.unitsAfter - 1 } = key.rest ?? {};
  const isSeed = taken.place === undefined && ((seedUnits - taken.unitsAfter) | 0) >= 0;
  const units = isSeed ? Math.min(unused.window, Number(isWhole)) : unused.window;
  if (isLogged && units !== 0) windowGiveBack(key, taken.startedUs, units);
  if (taken.period >= 0) quotaGiveBack(key, taken.period, unused.quota);
}

/**
 * Lets the newest start be as if it had never been: the one before it is the newest again. One that is not the newest is remembered, as long as those
 * returned follow one another, and goes with the newest.
 */
function takeOut(key: Key, { previousUs, unitsAfter, cost }: Taken, laterUnits: number): void {
  const fromUnits = (unitsAfter - cost.rate) >>> 0;
  const before = key.rest?.returned;
  let run = { previousUs, fromUnits, toUnits: unitsAfter };
  const isNext = before?.toUnits === fromUnits;
  if (before !== undefined && isNext) run = { ...before, toUnits: unitsAfter };
  else if (before?.fromUnits === unitsAfter) run.toUnits = before.toUnits;
  if (laterUnits > 0) {
    key.needRest().returned = run;
    return;
  }
  key.words[key.at + LAST_US] = run.previousUs;
  key.halves[2 * key.at + UNITS] = run.fromUnits;
  // Starts to come get these numbers again.
  if (key.rest !== undefined && isNext) key.rest.returned = undefined;
}

/** Units taken after that start; Infinity when a `reset` lies between. */
export function unitsSince(key: Key, { startedUs, unitsAfter }: Pick<Taken, "startedUs" | "unitsAfter">): number {
  const cut = key.rest?.cut;
  // Every start takes a unit at least, so the count tells starts of one instant apart.
  const isCut =
    cut !== undefined && (startedUs < cut.atUs || (startedUs === cut.atUs && ((cut.units - unitsAfter) | 0) >= 0));
  return isCut ? Number.POSITIVE_INFINITY : (key.halves[2 * key.at + UNITS] - unitsAfter) >>> 0;
}

/** Of the units taken after that start, those known to have come back. */
function returnedSince({ rest }: Key, { unitsAfter }: Taken, laterUnits: number): number {
  const { fromUnits = 0, toUnits = 0 } = rest?.returned ?? {};
  return (fromUnits - unitsAfter) >>> 0 < laterUnits ? (toUnits - fromUnits) >>> 0 : 0;
}

/** Frees the place of an open start. Where things count from the answer, its gap and windows begin now, with `units`; undefined: it was never sent. */
export function end(key: Key, rule: Rule, place: Place | undefined, nowUs: number, units: number | undefined): void {
  if (place === undefined) key.halves[2 * key.at + FLIGHT] -= 1;
  else placesGiveBack(key, place);
  if (units !== undefined && (rule.fromAnswer || (place !== undefined && place.pendingUnits > 0))) {
    countAnswer(key, rule, (place?.pendingUnits ?? 0) > 0 ? units : 0, nowUs);
  }
}

/** Frees the oldest place if it was held for longer than `maxHold`, at the instant at which that was over. */
export function lapse(key: Key, rule: Rule, nowUs: number): Place | undefined {
  const place = key.rest?.places?.first;
  if (place === undefined || place.startedUs + rule.maxHoldUs > nowUs) return undefined;
  place.lapsedUs = place.startedUs + rule.maxHoldUs;
  end(key, rule, place, place.startedUs + rule.maxHoldUs, place.pendingUnits);
  return place;
}

/** Until when the key owes anything, if nothing comes back before; at or before `nowUs`: it is as good as new. */
export function owesUntil(key: Key, rule: Rule, nowUs: number): number {
  const loose = Math.max(
    placesOweUntil(key, rule, nowUs),
    gapOwesUntil(key, rule),
    rateOwesUntil(key, bucketOf(key, rule)),
  );
  if (key.rest === undefined) return loose;
  const { holds } = key.rest;
  const heldUs = holds === undefined ? nowUs : holdsOweUntil(key, holds, rule, nowUs);
  return Math.max(loose, heldUs, windowOwesUntil(key), quotaOwesUntil(key, nowUs));
}
