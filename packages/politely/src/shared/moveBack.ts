import { ALWAYS_US, type KeyState, NEVER_US } from "./keyState.js";
import { logOf, logPairs } from "./windowLog.js";

/** Moves everything a key remembers back by `byUs`, as if it had happened that much earlier on the clock. The calendar stays where it is. */
export function moveBack(state: KeyState, byUs: number): void {
  const back = (atUs: number): number => (atUs === NEVER_US || atUs === ALWAYS_US ? atUs : Math.max(0, atUs - byUs));
  // An instant from before the step can no longer be told from a later one, so nothing of that time can be given back.
  const sinceUs = Math.max(state.seenUs, state.lastUs) + 1;
  state.seenUs = back(state.seenUs);
  state.lastUs = back(state.lastUs);
  state.answeredUs = back(state.answeredUs);
  state.pausedUntilUs = back(state.pausedUntilUs);
  moveAnswersBack(state, back);
  state.line.length = 0;
  state.places.forEach((place, index) => {
    const { id, units } = place;
    state.places[index] = { id, units, expiresUs: back(place.expiresUs), holdUntilUs: back(place.holdUntilUs) };
  });
  for (const track of state.tracks) {
    track.usedUs = back(track.usedUs);
    track.sinceUs = Math.max(track.sinceUs, sinceUs);
    track.owedUs = back(track.owedUs);
    track.quotaSinceUs = back(track.quotaSinceUs);
    track.logs.forEach((log, index) => {
      track.logs[index] = movedLog(log, back);
    });
  }
  state.members.forEach(({ name, seenUs }, index) => {
    state.members[index] = { name, seenUs: back(seenUs) };
  });
  state.memos.forEach((memo, index) => {
    state.memos[index] = { ...memo, atUs: back(memo.atUs) };
  });
}

function moveAnswersBack(state: KeyState, back: (atUs: number) => number): void {
  const { cooldown, headroom } = state;
  if (cooldown !== undefined) {
    const { untilUs, beganUs, probeAtUs } = cooldown;
    state.cooldown = { ...cooldown, untilUs: back(untilUs), beganUs: back(beganUs), probeAtUs: back(probeAtUs) };
  }
  if (headroom === undefined) return;
  const { untilUs, holdUntilUs, startedUs } = headroom;
  state.headroom = {
    ...headroom,
    untilUs: back(untilUs),
    holdUntilUs: back(holdUntilUs),
    startedUs: back(startedUs),
  };
}

function movedLog(log: Float64Array, back: (atUs: number) => number): Float64Array {
  return logOf(logPairs(log).map((value, index) => (index % 2 === 0 ? back(value) : value)));
}
