import type { KeyState } from "./keyState.js";
import type { RenewOperation, RenewReply } from "./operation.js";
import { endLapsedPlaces } from "./places.js";

/** Keeps places for a process that lives. One that has lapsed stays lost: it may be somebody else's by now. */
export function renew(states: readonly KeyState[], operation: RenewOperation, nowUs: number): RenewReply {
  const found = new Set<string>();
  for (const state of states) {
    endLapsedPlaces(state, nowUs);
    for (const place of state.places) {
      if (!operation.places.includes(place.id)) continue;
      place.expiresUs = Math.max(place.expiresUs, nowUs + operation.leaseUs);
      found.add(place.id);
    }
  }
  return { nowUs, lost: operation.places.filter((place) => !found.has(place)) };
}
