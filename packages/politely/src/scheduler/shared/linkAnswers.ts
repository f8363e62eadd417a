import type { Operation, Sender, SettleOperation } from "../../core/shared/operation.js";

/** Whether an operation tells an answer and nothing else that anybody waits for: it holds a key, or says what is left there. */
export function isHoldAnswer(operation: Operation): operation is SettleOperation {
  if (operation.kind !== "settle" || operation.isUnused) return false;
  return operation.keys.some(({ answer }) => isHold(answer.kind) || answer.remaining >= 0);
}

/** The same for all answers at these keys of which the store makes no more than of the last. */
export function answerName(keys: readonly string[], { keys: heard }: SettleOperation): string {
  return [...keys, ...heard.map(({ answer }) => `${answer.kind} ${answer.remaining < 0 ? "" : "left"}`)].join("\n");
}

/** How long each key is to be left alone: by this answer, or by those before it. */
export function longestOf({ keys }: SettleOperation, before: readonly number[] = []): number[] {
  return keys.map(({ answer }, index) => Math.max(answer.retryAfterUs, before[index] ?? 0));
}

/** An answer that asks for at least so long at each key. */
export function lengthen(operation: SettleOperation, retryAfterUs: readonly number[]): SettleOperation {
  const keys = operation.keys.map((key, index) => ({
    ...key,
    answer: { ...key.answer, retryAfterUs: Math.max(key.answer.retryAfterUs, retryAfterUs[index]) },
  }));
  return { ...operation, keys };
}

/** The answer of a start that comes back, without what it gives back. */
export function bareAnswer(operation: SettleOperation, sender: Sender): SettleOperation {
  const keys = operation.keys.map((key) => ({
    ...key,
    unitsAfter: Number.MAX_SAFE_INTEGER,
    previousUs: -1,
    back: { rate: 0, window: 0, quota: 0 },
    windowUnits: 0,
  }));
  return { ...operation, ...sender, place: "", isOver: false, keys };
}

function isHold(kind: string): boolean {
  return kind === "rate_limited" || kind === "server_error" || kind === "timeout";
}
