import { INCIDENT_MEMORY_US } from "./cooldown.js";
import { MEMO_US } from "./decide.js";
import { ALWAYS_US, type KeyState, NEVER_US } from "./keyState.js";
import { MEMBER_US } from "./take.js";
import { logPairs, windowsOf } from "./windowLog.js";

/** What is kept beyond the last debt: for clocks that differ, and for answers on their way. */
const MARGIN_US = 60_000_000;
/** Nothing is kept for longer without being touched: a pause that nobody ends, say. */
const MOST_US = 400 * 86_400_000_000;

/** How long a key must be kept from `nowUs` on so that forgetting it is no gift. */
export function keepForUs(state: KeyState, nowUs: number): number {
  let untilUs = nowUs + MARGIN_US;
  const need = (atUs: number): void => {
    untilUs = Math.max(untilUs, atUs === ALWAYS_US ? atUs : atUs + MARGIN_US);
  };
  need(state.pausedUntilUs);
  if (state.cooldown !== undefined) need(state.cooldown.untilUs + INCIDENT_MEMORY_US);
  if (state.headroom !== undefined) need(state.headroom.untilUs);
  let endUs = NEVER_US;
  for (const { expiresUs, holdUntilUs } of state.places) endUs = Math.max(endUs, Math.min(expiresUs, holdUntilUs));
  need(endUs);
  const startUs = Math.max(state.lastUs, state.answeredUs);
  need(startUs + state.slowUs);
  for (const { rule, owed, owedUs, logs, usedUs, quotaUsed, quotaUntilUs } of state.tracks) {
    // Where things count from the answer, those in flight begin to count when they end.
    const newestUs = rule.fromAnswer ? Math.max(startUs, endUs) : startUs;
    need(newestUs + Math.max(rule.gapUs, state.slowUs));
    need(usedUs);
    if (rule.rateCount > 0) need(owedUs + Math.ceil(owed / rule.rateCount));
    if (quotaUsed > 0) need(quotaUntilUs);
    windowsOf(rule.windows).forEach(({ perUs }, index) => {
      const loggedUs = logPairs(logs[index]).at(-2);
      if (loggedUs !== undefined) need(loggedUs + perUs);
      if (rule.fromAnswer && endUs !== NEVER_US) need(endUs + perUs);
    });
  }
  for (const { turnUs } of state.line) need(turnUs);
  for (const { seenUs } of state.members) need(seenUs + MEMBER_US);
  for (const { atUs } of state.memos) need(atUs + MEMO_US);
  return Math.min(MOST_US, untilUs - nowUs);
}
