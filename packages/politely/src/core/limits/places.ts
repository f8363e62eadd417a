import { type Ahead, type Key, type Place, type Places, ROW, type Tell } from "../key.js";
import type { Rule } from "../rule.js";

const { FLIGHT, LAST_US } = ROW;

/** Whether every start of the key must be known until its answer. */
export function isFollowed(rule: Rule): boolean {
  return rule.fromAnswer || rule.concurrency !== Number.POSITIVE_INFINITY;
}

/** Starts in flight. A key that has not started for `maxHold` has none but those that hold a place. */
export function inFlight(key: Key, rule: Rule, nowUs: number): number {
  return looseCount(key, rule, nowUs) + (key.rest?.places?.count ?? 0);
}

/** Starts in flight that hold no place. */
export function looseCount(key: Key, rule: Rule, nowUs: number): number {
  const count = key.halves[2 * key.at + FLIGHT];
  return count === 0 || lastStartUs(key) + rule.maxHoldUs <= nowUs ? 0 : count;
}

/** The last start, also when it was forgotten by a `reset`. */
function lastStartUs(key: Key): number {
  return Math.max(key.words[key.at + LAST_US], key.rest?.lastUs ?? Number.NEGATIVE_INFINITY);
}

/** At most `concurrency` starts in flight. A place whose permit is not released is free again after `maxHold`. */
export function placesReadyAt(key: Key, rule: Rule, ahead: Ahead, nowUs: number, tell?: Tell): number {
  if (inFlight(key, rule, nowUs) + ahead.requests < rule.concurrency) return nowUs;
  const first = key.rest?.places?.first;
  const latestUs = (first?.startedUs ?? lastStartUs(key)) + rule.maxHoldUs;
  const words = `concurrency ${rule.text.concurrency}, all in flight`;
  tell?.({ limit: "concurrency", atUs: nowUs, isAwaited: true, latestUs, words });
  // Those ahead may not be in flight yet: then it is their places that are free again.
  return ahead.requests === 0 ? latestUs : nowUs + rule.maxHoldUs;
}

/** Takes a place. `pendingUnits` enter the windows at the answer. */
export function placesTake(key: Key, startedUs: number, pendingUnits: number): Place {
  const rest = key.needRest();
  rest.places ??= { count: 0, pendingUnits: 0, first: undefined, last: undefined };
  const { places } = rest;
  const { last } = places;
  const place: Place = {
    startedUs,
    pendingUnits,
    isLive: true,
    isLapsed: false,
    permit: undefined,
    previous: last,
    next: undefined,
  };
  if (last === undefined) places.first = place;
  else last.next = place;
  places.last = place;
  places.count += 1;
  places.pendingUnits += pendingUnits;
  return place;
}

/** Frees a place. */
export function placesGiveBack(places: Places, place: Place): void {
  if (place.previous === undefined) places.first = place.next;
  else place.previous.next = place.next;
  if (place.next === undefined) places.last = place.previous;
  else place.next.previous = place.previous;
  place.previous = undefined;
  place.next = undefined;
  place.isLive = false;
  places.count -= 1;
  places.pendingUnits -= place.pendingUnits;
}
