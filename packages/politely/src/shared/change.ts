import { ALWAYS_US, type KeyState, NEVER_US } from "./keyState.js";
import type { SetOperation } from "./operation.js";
import { emptyLog } from "./windowLog.js";

/** Pauses, resumes or forgets, as somebody wants. Places in flight stay in flight. */
export function change(state: KeyState, { pauseUs, reset }: SetOperation, nowUs: number): void {
  if (pauseUs >= 0) {
    const untilUs = Math.min(ALWAYS_US, nowUs + pauseUs);
    state.pausedUntilUs = pauseUs === 0 ? NEVER_US : untilUs;
  }
  if (reset === "nothing") return;
  // What was taken before can no longer be returned; nor what was granted ahead.
  const sinceUs = Math.max(nowUs, state.lastUs) + 1;
  state.lastUs = NEVER_US;
  state.answeredUs = NEVER_US;
  state.line.length = 0;
  for (const track of state.tracks) {
    track.sinceUs = sinceUs;
    track.owed = 0;
    track.owedUs = 0;
    track.logs.forEach((_, index) => {
      track.logs[index] = emptyLog();
    });
    if (reset === "all") track.quotaUsed = 0;
  }
  if (reset !== "all") return;
  state.cooldown = undefined;
  state.probe = "";
  state.headroom = undefined;
  state.pausedUntilUs = NEVER_US;
}
