import { type Ahead, type Key, type Place, ROW, type Tell } from "../key.js";
import type { Rule } from "../rule.js";

const { FLIGHT, LAST_US } = ROW;

/** Whether every start of the key must be known until its answer. */
export function isFollowed(rule: Rule): boolean {
  return rule.fromAnswer || rule.concurrency !== Number.POSITIVE_INFINITY;
}

/** Starts in flight that hold no place. A key that has not started for `maxHold` has none. */
export function looseCount({ words, halves, at, rest }: Key, rule: Rule, nowUs: number): number {
  const lastUs = rest?.looseUs ?? words[at + LAST_US];
  return lastUs + rule.maxHoldUs <= nowUs ? 0 : halves[2 * at + FLIGHT];
}

/** Starts in flight. */
export function inFlight(key: Key, rule: Rule, nowUs: number): number {
  return looseCount(key, rule, nowUs) + (key.rest?.places?.count ?? 0);
}

/** At most `concurrency` starts in flight. A place whose permit is not released is free again after `maxHold`. */
export function placesReadyAt(key: Key, rule: Rule, nowUs: number, ahead: Ahead, tell?: Tell): number {
  if (inFlight(key, rule, nowUs) + ahead.requests < rule.concurrency) return nowUs;
  const first = key.rest?.places?.first;
  const latestUs = (first?.startedUs ?? key.words[key.at + LAST_US]) + rule.maxHoldUs;
  tell?.("concurrency", nowUs, `concurrency ${rule.text.concurrency}, all in flight`, latestUs);
  // Those ahead may not be in flight yet: then it is their places that are free again.
  return ahead.requests === 0 ? latestUs : nowUs + rule.maxHoldUs;
}

/** The starts in flight that hold a place, oldest first. */
export function placesOf({ rest }: Key): Place[] {
  const all: Place[] = [];
  for (let place = rest?.places?.first; place !== undefined; place = place.next) all.push(place);
  return all;
}

/** Takes a place. `pendingUnits` enter the windows at the answer. */
export function placesTake(key: Key, startedUs: number, units: number, pendingUnits: number): Place {
  const rest = key.needRest();
  rest.places ??= { count: 0, pendingUnits: 0, first: undefined, last: undefined };
  const { places } = rest;
  const previous = places.last;
  const place: Place = {
    startedUs,
    units,
    pendingUnits,
    lapsedUs: undefined,
    permit: undefined,
    previous,
    next: undefined,
  };
  if (previous === undefined) places.first = place;
  else previous.next = place;
  places.last = place;
  places.count += 1;
  places.pendingUnits += pendingUnits;
  return place;
}

/** Frees a place. */
export function placesGiveBack({ rest }: Key, place: Place): void {
  const places = rest?.places;
  if (places === undefined) return;
  if (place.previous === undefined) places.first = place.next;
  else place.previous.next = place.next;
  if (place.next === undefined) places.last = place.previous;
  else place.next.previous = place.previous;
  place.previous = undefined;
  place.next = undefined;
  places.count -= 1;
  places.pendingUnits -= place.pendingUnits;
}

/** Until when something may be in flight; `nowUs` when nothing is. */
export function placesOweUntil(key: Key, rule: Rule, nowUs: number): number {
  return inFlight(key, rule, nowUs) === 0 ? nowUs : Math.max(nowUs + 1, key.words[key.at + LAST_US] + rule.maxHoldUs);
}
