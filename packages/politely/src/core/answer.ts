/** What an answer means to the host's limits. `neutral` frees the place and moves nothing. */
export type AnswerKind = "success" | "rate_limited" | "server_error" | "timeout" | "neutral";

/**
 * What a status means.
 *
 * `isToldToWait` is true when the answer carries a usable Retry-After, or says that nothing of a budget remains: it turns a
 * 503 and a 403 into "too many requests".
 */
export function statusMeaning(status: number, isToldToWait: boolean): AnswerKind {
  if (status === 429 || status === 418 || status === 420 || status === 509 || status === 529) return "rate_limited";
  if ((status === 503 || status === 403) && isToldToWait) return "rate_limited";
  if (status >= 500 || status === 408) return "server_error";
  if (status >= 200 && status < 400) return "success";
  return "neutral";
}
