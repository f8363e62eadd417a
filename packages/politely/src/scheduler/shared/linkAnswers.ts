import { isBadAnswer } from "../../core/answer.js";
import type { Operation, Sender, SetOperation, SettleKey, SettleOperation } from "../../shared/operation.js";
import { NOTHING } from "../cost.js";

/** Whether an operation tells an answer and nothing else that anybody waits for: it holds a key, or says what is left there. */
export function isHoldAnswer(operation: Operation): operation is SettleOperation {
  if (operation.kind !== "settle" || operation.isUnused) return false;
  return operation.keys.some(({ answer }) => isBadAnswer(answer.kind) || answer.remaining >= 0);
}

/** The same for all answers at these keys of which the store makes no more than of the last. */
export function answerName(keys: readonly string[], { keys: heard }: SettleOperation): string {
  return [...keys, ...heard.map(({ answer }) => `${answer.kind} ${answer.remaining < 0 ? "" : "left"}`)].join("\n");
}

/** Until when each key was asked to be left alone: by this answer, or by those before it. 0: nobody said. */
export function latestOf({ keys }: SettleOperation, nowUs: number, before: readonly number[] = []): number[] {
  return keys.map(({ answer: { retryAfterUs } }, index) =>
    Math.max(retryAfterUs > 0 ? nowUs + retryAfterUs : 0, before[index] ?? 0),
  );
}

/** An answer that asks for each key to be left alone until then; where nobody said, as it is. What is over asks for the least there is, not for the usual. */
export function askUntil(operation: SettleOperation, untilUs: readonly number[], nowUs: number): SettleOperation {
  const keys = operation.keys.map((key, index) => {
    if (untilUs[index] === 0) return key;
    return { ...key, answer: { ...key.answer, retryAfterUs: Math.max(1, untilUs[index] - nowUs) } };
  });
  return { ...operation, keys };
}

/**
 * An answer that was heard so long ago: what it asks for counts from then. What is over asks for the least there is.
 *
 * Of a backoff only its longest step is shortened: which one it is, the store knows.
 */
export function aged(operation: SettleOperation, ageUs: number): SettleOperation {
  const keys = operation.keys.map((key): SettleKey => {
    const { answer, cooldownUs, backoff } = key;
    const retryAfterUs = answer.retryAfterUs === 0 ? 0 : Math.max(1, answer.retryAfterUs - ageUs);
    return {
      ...key,
      answer: { ...answer, retryAfterUs, resetUs: Math.max(0, answer.resetUs - ageUs) },
      cooldownUs: cooldownUs.map((us) => Math.max(0, us - ageUs)),
      backoff: { ...backoff, maxUs: Math.max(0, backoff.maxUs - ageUs) },
    };
  });
  return { ...operation, keys };
}

/** An operation that may have arrived already. */
export function again<Op extends Operation>(operation: Op): Op {
  return isGift(operation) ? { ...operation, isAgain: true } : operation;
}

/** Whether an operation gives units back. */
export function isGift(operation: Operation): boolean {
  if (operation.kind !== "settle") return false;
  return operation.keys.some(({ back }) => back.rate > 0 || back.window > 0 || back.quota > 0);
}

/** The answer of a start that comes back, without what it gives back. */
export function bareAnswer(operation: SettleOperation, sender: Sender): SettleOperation {
  const keys = operation.keys.map((key) => ({
    ...key,
    unitsAfter: Number.MAX_SAFE_INTEGER,
    previousUs: -1,
    back: NOTHING,
    windowUnits: 0,
  }));
  return { ...operation, ...sender, place: "", isOver: false, keys };
}

/** Stands for a sender where an operation is only looked at. */
export const NOBODY: Sender = { asker: "", sequence: 0 };

/** An operation that changes nothing, and is written all the same. */
export function trial({ asker, sequence }: Sender): SetOperation {
  return { kind: "set", asker, sequence, pauseUs: -1, reset: "nothing" };
}
