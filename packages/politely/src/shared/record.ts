import type { KeyState } from "./keyState.js";
import type { RecordOperation, Units } from "./operation.js";
import { endLapsedPlaces } from "./places.js";
import { countStart, dropOldTracks, isStale, logUnits, trackOf } from "./tracks.js";

/** How long the policy of a process that only records counts as used. */
const RECORDER_LEASE_US = 30_000_000;

/** Counts starts made without asking, even where no limit had room for them. */
export function record(states: readonly KeyState[], operation: RecordOperation, nowUs: number): void {
  states.forEach((state, index) => {
    const given = operation.keys[index];
    // Who is wrong about the calendar does not begin another period for everybody.
    const key = isStale(given.period, nowUs) ? { ...given, period: undefined } : given;
    endLapsedPlaces(state, nowUs);
    const own = trackOf(state, key.ruleId, key.rule, nowUs);
    own.usedUs = Math.max(own.usedUs, nowUs + RECORDER_LEASE_US);
    dropOldTracks(state, key.ruleId, nowUs);
    state.slowUs = Math.max(state.slowUs, key.slowUs);
    operation.agesUs.forEach((ageUs, group) => {
      const startedUs = Math.max(0, nowUs - ageUs);
      const count = operation.counts?.[group] ?? 1;
      const spent = operation.units?.[group][index] ?? times(key.cost, count);
      state.units += spent.rate;
      state.starts += count;
      countStart(state, key, spent, startedUs, nowUs);
      // Nobody will tell when it was answered: it counts from itself.
      for (const track of state.tracks) {
        if (!track.rule.fromAnswer) continue;
        logUnits(track, startedUs, spent.window);
        state.answeredUs = Math.max(state.answeredUs, startedUs);
      }
      state.lastUs = Math.max(state.lastUs, startedUs);
    });
  });
}

/** What so many of the same cost take together. */
export function times({ rate, window, quota }: Units, count: number): Units {
  return { rate: rate * count, window: window * count, quota: quota * count };
}
