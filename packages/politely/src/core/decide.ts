import type { LimitKind } from "../observe/types.js";
import {
  type Ahead,
  type Cost,
  type Key,
  NOBODY,
  type Place,
  type Returned,
  ROW,
  type Taken,
  type Tell,
} from "./key.js";
import { gapGiveBack, gapReadyAt, gapTake, spacedFromUs } from "./limits/gap.js";
import { holdsOweUntil, holdsReadyAt, pauseReadyAt } from "./limits/holds.js";
import { inFlight, isFollowed, looseCount, placesGiveBack, placesReadyAt, placesTake } from "./limits/places.js";
import { quotaGiveBack, quotaOwesUntil, quotaReadyAt, quotaTake } from "./limits/quota.js";
import { rateGiveBack, rateOwesUntil, rateReadyAt, rateTake } from "./limits/rate.js";
import { windowGiveBack, windowOwesUntil, windowReadyAt, windowTake } from "./limits/window.js";
import type { Rule } from "./rule.js";

// The one place where the limits of a key come together. Each of them has a file in limits/ that knows when it allows a start, what a
// start takes from it, what is given back, and until when it is owed; nothing else in the library does.

const { FLIGHT, LAST_US, OWED, UNITS } = ROW;

/** So many starts returned out of order are remembered. */
const RETURNED_MOST = 256;

/** What the last `readyAt` found most binding, for whoever has to know before the next one: a queue, that is. */
export const binding: { limit: LimitKind | undefined } = { limit: undefined };

/**
 * The instant from which a start of that cost is possible, after those `ahead`; at or before `nowUs` means now.
 *
 * Where an answer is waited for this is when it is no longer; Infinity: only an answer or a person can tell. `tell` hears of every limit that
 * stands in the way, with the earliest instant at which it might not.
 */
export function readyAt(key: Key, rule: Rule, cost: Cost, nowUs: number, ahead: Ahead = NOBODY, tell?: Tell): number {
  let atUs = nowUs;
  let limit: LimitKind | undefined;
  const { rest } = key;
  if (rest !== undefined) {
    const pausedUs = pauseReadyAt(rest, nowUs, tell);
    if (pausedUs > atUs) [atUs, limit] = [pausedUs, "pause"];
    if (rule.enabled) {
      const heldUs = holdsReadyAt(key, rest, rule, nowUs, tell);
      if (heldUs > atUs) [atUs, limit] = [heldUs, "cooldown"];
    }
  }
  if (rule.gapUs !== 0) {
    const gapUs = gapReadyAt(key, rule, ahead, nowUs, tell);
    if (gapUs > atUs) [atUs, limit] = [gapUs, "minDelay"];
  }
  if (rule.rateCount !== 0) {
    const rateUs = rateReadyAt(key, rule, cost.rate, ahead, nowUs, tell);
    if (rateUs > atUs) [atUs, limit] = [rateUs, "rate"];
  }
  for (let index = 0; index < rule.windows.length; index++) {
    const windowUs = windowReadyAt(key, rule, index, cost, ahead, nowUs, tell);
    if (windowUs > atUs) [atUs, limit] = [windowUs, "window"];
  }
  if (rule.quota !== undefined) {
    const quotaUs = quotaReadyAt(key, rule, cost.quota, ahead, nowUs, tell);
    if (quotaUs > atUs) [atUs, limit] = [quotaUs, "quota"];
  }
  if (rule.concurrency !== Number.POSITIVE_INFINITY) {
    const placeUs = placesReadyAt(key, rule, ahead, nowUs, tell);
    if (placeUs > atUs) [atUs, limit] = [placeUs, "concurrency"];
  }
  binding.limit = limit;
  return atUs;
}

/** Counts a start that is granted now, and holds its place. Only after a `readyAt` that allows it. */
export function take(key: Key, rule: Rule, cost: Cost, atUs: number): Taken {
  const previousUs = key.words[key.at + LAST_US];
  const period = count(key, rule, cost, atUs, atUs);
  const half = 2 * key.at;
  let place: Place | undefined;
  if (!isFollowed(rule)) {
    key.halves[half + FLIGHT] += 1;
  } else place = placesTake(key, atUs, rule.fromAnswer ? cost.window : 0);
  return { startedUs: atUs, previousUs, unitsAfter: key.halves[half + UNITS], cost, place, period };
}

/** Counts a start that was made and answered without asking, as far as the past is still known. */
export function record(key: Key, rule: Rule, cost: Cost, startedUs: number, nowUs: number): void {
  count(key, rule, cost, startedUs, nowUs);
  if (!rule.fromAnswer) return;
  logStart(key, rule, nowUs, cost.window, nowUs);
  key.needRest().answeredUs = nowUs;
}

/** Counts a start in everything but places; returns the quota's period. */
function count(key: Key, rule: Rule, cost: Cost, startedUs: number, nowUs: number): number {
  gapTake(key, startedUs);
  const bucket = rule.rateCount === 0 ? key.rest?.measure : rule;
  if (bucket !== undefined) rateTake(key, bucket, cost.rate, startedUs);
  key.halves[2 * key.at + UNITS] += cost.rate;
  if (!rule.fromAnswer) logStart(key, rule, startedUs, cost.window, nowUs);
  return rule.quota === undefined ? -1 : quotaTake(key, rule.quota, cost.quota);
}

function logStart(key: Key, rule: Rule, atUs: number, units: number, nowUs: number): void {
  if (rule.windows.length > 0 || key.halves[2 * key.at + ROW.LOG] !== 0) windowTake(key, rule, atUs, units, nowUs);
}

/**
 * Corrects what an open start took: `unused` less than it did, or with negative numbers more. `isWhole`: it was never sent, so the gap goes
 * back, too. Call it before `end`.
 */
export function giveBack(key: Key, rule: Rule, taken: Taken, unused: Cost, nowUs: number, isWhole: boolean): void {
  const half = 2 * key.at + UNITS;
  const laterUnits = unitsSince(key, taken);
  const isCut = laterUnits === Number.POSITIVE_INFINITY;
  const bucket = rule.rateCount === 0 ? key.rest?.measure : rule;
  if (bucket !== undefined && unused.rate !== 0) rateGiveBack(key, bucket, unused.rate, laterUnits, nowUs);
  if (unused.rate < 0) key.halves[half] -= unused.rate;
  if (isWhole && !isCut) takeOut(key, taken, laterUnits === 0);
  const isLogged = taken.place === undefined || taken.place.pendingUnits === 0;
  if (isLogged && !isCut && unused.window !== 0) windowGiveBack(key, taken.startedUs, unused.window);
  if (rule.quota !== undefined && !(isCut && key.rest?.cut?.isWhole === true)) {
    quotaGiveBack(key, taken.period, unused.quota);
  }
}

/** Lets the newest start be as if it had never been, and those before it that were returned already: the one before them is the newest again. */
function takeOut(key: Key, taken: Taken, isNewest: boolean): void {
  if (!isNewest) {
    const rest = key.needRest();
    rest.returned ??= new Map();
    // Those that follow one another make one: oldest first there is never more than one.
    const from = (taken.unitsAfter - taken.cost.rate) >>> 0;
    const before = rest.returned.get(from);
    rest.returned.delete(from);
    const previousUs = before?.previousUs ?? taken.previousUs;
    const units = (before?.units ?? 0) + taken.cost.rate;
    if (rest.returned.size < RETURNED_MOST) rest.returned.set(taken.unitsAfter, { previousUs, units });
    return;
  }
  const half = 2 * key.at + UNITS;
  const returned = key.rest?.returned;
  let last: Returned | undefined = { previousUs: taken.previousUs, units: taken.cost.rate };
  while (last !== undefined) {
    gapGiveBack(key, last.previousUs);
    key.halves[half] -= last.units;
    const units = key.halves[half];
    last = returned?.get(units);
    returned?.delete(units);
  }
}

/** Units taken after that start; Infinity when a `reset` lies between. */
export function unitsSince(key: Key, taken: Pick<Taken, "startedUs" | "unitsAfter">): number {
  const units = key.halves[2 * key.at + UNITS];
  const cut = key.rest?.cut;
  if (cut !== undefined) {
    // Every start takes a unit at least, so the count tells starts of one instant apart.
    const isBefore =
      taken.startedUs < cut.atUs || (taken.startedUs === cut.atUs && ((cut.units - taken.unitsAfter) | 0) >= 0);
    if (isBefore) return Number.POSITIVE_INFINITY;
  }
  return (units - taken.unitsAfter) >>> 0;
}

/** Frees the place of an open start. Where things count from the answer, its gap and windows begin now, with `units`; undefined: it was never sent. */
export function end(key: Key, rule: Rule, taken: Pick<Taken, "place">, nowUs: number, units: number | undefined): void {
  const { place } = taken;
  const places = key.rest?.places;
  if (place === undefined || places === undefined) key.halves[2 * key.at + FLIGHT] -= 1;
  else {
    const isPending = place.pendingUnits > 0;
    placesGiveBack(places, place);
    if (units !== undefined && isPending) logStart(key, rule, nowUs, units, nowUs);
    if (units === undefined || !(isPending || rule.fromAnswer)) return;
    key.needRest().answeredUs = Math.max(key.needRest().answeredUs, nowUs);
    return;
  }
  if (units === undefined || !rule.fromAnswer) return;
  const rest = key.needRest();
  rest.answeredUs = Math.max(rest.answeredUs, nowUs);
}

/** Frees the places held for longer than `maxHold`, each at the instant at which that was over. */
export function lapse(key: Key, rule: Rule, nowUs: number, onLapse: (place: Place) => void): void {
  for (;;) {
    const place = key.rest?.places?.first;
    if (place === undefined || place.startedUs + rule.maxHoldUs > nowUs) return;
    place.isLapsed = true;
    end(key, rule, { place }, place.startedUs + rule.maxHoldUs, place.pendingUnits);
    onLapse(place);
  }
}

/** Until when the key owes anything; at or before `nowUs`: it is as good as new. Infinity while a start is in flight. */
export function owesUntil(key: Key, rule: Rule, nowUs: number): number {
  if (looseCount(key, rule, nowUs) > 0 || inFlight(key, rule, nowUs) > 0) return Number.POSITIVE_INFINITY;
  let atUs = nowUs;
  if (rule.gapUs !== 0) atUs = Math.max(atUs, spacedFromUs(key, rule) + rule.gapUs);
  const bucket = rule.rateCount === 0 ? key.rest?.measure : rule;
  if (bucket !== undefined && key.words[key.at + OWED] > 0) atUs = Math.max(atUs, rateOwesUntil(key, bucket));
  atUs = Math.max(atUs, windowOwesUntil(key));
  const { rest } = key;
  if (rest === undefined) return atUs;
  return Math.max(atUs, quotaOwesUntil(key, rule, nowUs), holdsOweUntil(key, rest, rule, nowUs));
}
