import type { KeyState } from "./keyState.js";
import type { RecordOperation } from "./operation.js";
import { endLapsedPlaces } from "./places.js";
import { countStart, dropOldTracks, logUnits, trackOf } from "./tracks.js";

/** How long the policy of a process that only records counts as used. */
const RECORDER_LEASE_US = 30_000_000;

/** Counts starts made without asking, even where no limit had room for them. */
export function record(states: readonly KeyState[], operation: RecordOperation, nowUs: number): void {
  states.forEach((state, index) => {
    const key = operation.keys[index];
    endLapsedPlaces(state, nowUs);
    const own = trackOf(state, key.ruleId, key.rule, nowUs);
    own.usedUs = Math.max(own.usedUs, nowUs + RECORDER_LEASE_US);
    dropOldTracks(state, key.ruleId, nowUs);
    state.slowUs = Math.max(state.slowUs, key.slowUs);
    for (const ageUs of operation.agesUs) {
      const startedUs = Math.max(0, nowUs - ageUs);
      state.units += key.cost.rate;
      state.starts += 1;
      countStart(state, key, key.cost, startedUs);
      // Nobody will tell when it was answered: it counts from itself.
      for (const track of state.tracks) {
        if (!track.rule.fromAnswer) continue;
        logUnits(track, startedUs, key.cost.window);
        state.answeredUs = Math.max(state.answeredUs, startedUs);
      }
      state.lastUs = Math.max(state.lastUs, startedUs);
    }
  });
}
