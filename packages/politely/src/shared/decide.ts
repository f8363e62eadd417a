import { change } from "./change.js";
import type { KeyState } from "./keyState.js";
import { leave } from "./leave.js";
import { look } from "./look.js";
import { memoText, readMemo } from "./memoText.js";
import { moveBack } from "./moveBack.js";
import type { LimitOperation, LookOperation, ReplyTo, SettleOperation } from "./operation.js";
import { record } from "./record.js";
import { renew } from "./renew.js";
import { settle } from "./settle.js";
import { take } from "./take.js";
import { keep } from "./tracks.js";

/** How long an asker's last answer is remembered. Sending it again later than that would count twice. */
export const MEMO_US = 60_000_000;
const MEMOS_MOST = 1_000;
/**
 * A clock behind by less than this stands still; by more, it was set back, and the key's past moves with it.
 *
 * It is more than a client of any store is behind what another has written. Otherwise the one would move the past back again and again, and the other be
 * given the difference each time. DynamoDB's clients come closest: see `AnswerClock`.
 */
export const BEHIND_MOST_US = 2_000_000;

/**
 * Carries out one operation on the states of its keys, which it changes, and returns the reply.
 *
 * The one algorithm of all shared stores. An operation that was sent twice is answered as it was the first time, also when the
 * second comes after the asker's next one: nobody waits for that reply any more. An empty asker sends nothing twice.
 */
export function decide<Op extends LimitOperation>(
  states: readonly KeyState[],
  operation: Op,
  nowUs: number,
): ReplyTo<Op> {
  const timeUs = timeOf(states, nowUs);
  if (operation.kind === "look") return look(states, operation, timeUs) as ReplyTo<Op>;
  const [first] = states;
  const memo = first.memos.find(({ asker }) => asker === operation.asker);
  if (memo !== undefined && memo.sequence >= operation.sequence) return readMemo(memo.reply, operation) as ReplyTo<Op>;
  const isUnsure = operation.kind === "settle" && operation.isAgain === true && isMemoGone(first, timeUs);
  const reply = carryOut(states, isUnsure ? withoutGift(operation) : operation, timeUs) as ReplyTo<Op>;
  if (isWorthRemembering(operation, reply)) {
    keep(first.memos, ({ asker, atUs }) => asker !== operation.asker && atUs + MEMO_US > timeUs);
    if (first.memos.length >= MEMOS_MOST) first.memos.shift();
    const { asker, sequence } = operation;
    first.memos.push({ asker, sequence, atUs: timeUs, reply: memoText(reply) });
  }
  return reply;
}

/** Whether an answer may be forgotten that is not yet old: all those after it are there still, so the list is full, and the first of it not old either. */
function isMemoGone({ memos }: KeyState, nowUs: number): boolean {
  return memos.length >= MEMOS_MOST && memos[0].atUs + MEMO_US > nowUs;
}

/** What gives something back, without that: it may have been given already. */
function withoutGift(operation: SettleOperation): SettleOperation {
  const keys = operation.keys.map((key) => {
    const { rate, window, quota } = key.back;
    return { ...key, back: { rate: Math.min(0, rate), window: Math.min(0, window), quota: Math.min(0, quota) } };
  });
  return operation.isUnused ? { ...operation, keys, unusedAt: [] } : { ...operation, keys };
}

/** What can be asked again without harm needs no memory: everything but what was taken, given or decided by a person. */
function isWorthRemembering(operation: LimitOperation, reply: object): boolean {
  if (operation.kind !== "look" && operation.asker === "") return false;
  if (operation.kind === "take") return "starts" in reply && (reply.starts as readonly unknown[]).length > 0;
  if (operation.kind === "set") return operation.reset !== "nothing" || operation.pauseUs >= 0;
  return operation.kind === "settle" || operation.kind === "record";
}

/** The time for all keys. It never goes back: a clock that was set back by far takes the keys' past along, so that nothing is forgiven and nothing hangs. */
function timeOf(states: readonly KeyState[], nowUs: number): number {
  let timeUs = nowUs;
  for (const state of states) {
    if (state.seenUs - nowUs > BEHIND_MOST_US) moveBack(state, state.seenUs - nowUs);
    timeUs = Math.max(timeUs, state.seenUs);
  }
  for (const state of states) state.seenUs = timeUs;
  return timeUs;
}

function carryOut(
  states: readonly KeyState[],
  operation: Exclude<LimitOperation, LookOperation>,
  nowUs: number,
): object {
  switch (operation.kind) {
    case "take":
      return take(states, operation, nowUs);
    case "settle":
      return settle(states, operation, nowUs);
    case "renew":
      return renew(states, operation, nowUs);
    case "leave":
      for (const state of states) leave(state, operation.ticket, nowUs);
      return { nowUs };
    case "record":
      record(states, operation, nowUs);
      return { nowUs };
    case "set":
      for (const state of states) change(state, operation, nowUs);
      return { nowUs };
  }
}
