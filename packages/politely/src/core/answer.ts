import type { BudgetSaid } from "./headroom.js";

/** Answers that hold a host. */
export type BadAnswer = "rate_limited" | "server_error" | "timeout";

/** What an answer means to the host's limits. `neutral` frees the place and moves nothing. */
export type AnswerKind = "success" | BadAnswer | "neutral";

/** An outcome, understood. */
export interface Answer {
  readonly kind: AnswerKind | "unused";
  /** 0 when the site did not say. */
  readonly retryAfterUs: number;
  /** From the start to the answer, as the caller says; undefined when it does not say. */
  readonly latencyUs: number | undefined;
  /** What was answered, for people. */
  readonly because: string;
  /** The scope to hold instead of the host. */
  readonly scope: string | undefined;
  /** What the site says is left of its budget; undefined when it does not say. */
  readonly budget: BudgetSaid | undefined;
}

/** An answer at one key: what it says, when its request started, and when it came. */
export type Heard = Omit<Answer, "scope" | "budget"> & { readonly startedUs: number; readonly nowUs: number };

/** Whether an answer holds the host. One that was never sent, `unused`, does not. */
export function isBadAnswer(kind: AnswerKind | "unused"): kind is BadAnswer {
  return kind === "rate_limited" || kind === "server_error" || kind === "timeout";
}

/** An answer that says no more than its kind. */
export function answerOf(kind: Answer["kind"], retryAfterUs = 0, because = ""): Answer {
  return { kind, retryAfterUs, because, latencyUs: undefined, scope: undefined, budget: undefined };
}
