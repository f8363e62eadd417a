import type { BudgetSaid } from "./headroom.js";

/** Answers that hold a host. */
export type BadAnswer = "rate_limited" | "server_error" | "timeout";

/** What an answer means to the host's limits. `neutral` frees the place and moves nothing. */
export type AnswerKind = "success" | BadAnswer | "neutral";

/** One answer at a key, with what is needed to judge it. */
export interface Heard {
  readonly kind: AnswerKind;
  readonly startedUs: number;
  readonly nowUs: number;
  /** From the start to the answer. Undefined or negative: unknown. */
  readonly latencyUs?: number | undefined;
  /** How long the site asked to stay away; 0 when it did not say. */
  readonly retryAfterUs: number;
  /** What was answered, for people. */
  readonly because: string;
}

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

/** Whether an answer holds the host. One that was never sent, `unused`, does not. */
export function isBadAnswer(kind: AnswerKind | "unused"): kind is BadAnswer {
  return kind === "rate_limited" || kind === "server_error" || kind === "timeout";
}

/**
 * What a status means.
 *
 * A usable Retry-After turns a 503 and a 403 into "too many requests"; a budget of which nothing remains does so with a 403.
 */
export function statusMeaning(status: number, hasRetryAfter: boolean, isExhausted: boolean): AnswerKind {
  if (status === 429 || status === 418 || status === 420 || status === 509 || status === 529) return "rate_limited";
  if ((status === 503 && hasRetryAfter) || (status === 403 && (hasRetryAfter || isExhausted))) return "rate_limited";
  if (status >= 500 || status === 408) return "server_error";
  if (status >= 200 && status < 400) return "success";
  return "neutral";
}
