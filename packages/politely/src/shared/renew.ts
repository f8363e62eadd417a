import type { KeyState } from "./keyState.js";
import type { RenewOperation, RenewReply } from "./operation.js";
import { endLapsedPlaces } from "./places.js";

/** Keeps places for a process that lives, and its policy in use. A place that has lapsed stays lost: it may be somebody else's by now. */
export function renew(states: readonly KeyState[], operation: RenewOperation, nowUs: number): RenewReply {
  const found = new Set<string>();
  for (const [index, state] of states.entries()) {
    endLapsedPlaces(state, nowUs);
    const own = state.tracks.find(({ ruleId }) => ruleId === operation.ruleIds?.[index]);
    if (own !== undefined) own.usedUs = Math.max(own.usedUs, nowUs + operation.leaseUs);
    for (const place of state.places) {
      if (!operation.places.includes(place.id)) continue;
      place.expiresUs = Math.max(place.expiresUs, nowUs + operation.leaseUs);
      found.add(place.id);
    }
  }
  return { nowUs, lost: operation.places.filter((place) => !found.has(place)) };
}
