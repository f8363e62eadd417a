import type { KeyState, Track } from "./keyState.js";
import type { LookAtKey, LookOperation, LookReply, TakeKey } from "./operation.js";
import { endLapsedPlaces } from "./places.js";
import { rateOwedAt } from "./rate.js";
import { blocksAt } from "./ready.js";
import { MISSED_US } from "./take.js";
import { dropOldTracks, trackOf } from "./tracks.js";
import { windowReadyAt, windowUsed } from "./window.js";
import { windowsOf } from "./windowLog.js";

/** Says how the keys stand. What it changes in the states is not kept. */
export function look(states: readonly KeyState[], operation: LookOperation, nowUs: number): LookReply {
  const keys = states.map((state, index) => {
    const key = operation.keys[index];
    endLapsedPlaces(state, nowUs);
    const track = trackOf(state, key.ruleId, key.rule, nowUs);
    dropOldTracks(state, key.ruleId, nowUs);
    return lookAt(state, key, track, nowUs);
  });
  return { nowUs, keys };
}

function lookAt(state: KeyState, key: TakeKey, track: Track, nowUs: number): LookAtKey {
  const { rule } = track;
  const { cooldown } = state;
  return {
    stops: blocksAt(state, key, nowUs).map(({ kind, atUs, because }) => ({ kind, readyUs: atUs, because })),
    lastUs: state.lastUs,
    starts: state.starts,
    throttled: state.throttled,
    held: state.places.length,
    waiting: state.line.filter(({ turnUs }) => turnUs + MISSED_US > nowUs).length,
    cooldownUs: cooldown === undefined ? 0 : Math.max(0, cooldown.untilUs - nowUs),
    owed: rule.rateCount === 0 ? 0 : rateOwedAt(rule.rateCount, track.owed, track.owedUs, nowUs),
    windows: windowsOf(rule.windows).flatMap((window, index) => {
      const log = track.logs[index];
      return [windowUsed(log, 0, window, nowUs), windowReadyAt(log, 0, window, nowUs, 1, 0)];
    }),
  };
}
