import type { AnswerKind } from "../core/answer.js";

/**
 * What a status means.
 *
 * A usable Retry-After turns a 503, a 403 and a 413 into "too many requests"; a budget of which nothing remains does so with a 403.
 */
export function statusMeaning(status: number, hasRetryAfter: boolean, isExhausted: boolean): AnswerKind {
  if (status === 429 || status === 418 || status === 420 || status === 509 || status === 529) return "rate_limited";
  if ((status === 503 || status === 403 || status === 413) && hasRetryAfter) return "rate_limited";
  if (status === 403 && isExhausted) return "rate_limited";
  if (status >= 500 || status === 408) return "server_error";
  if (status >= 200 && status < 400) return "success";
  return "neutral";
}
