import { maxDurationUs } from "../../core/rule.js";
import { statusMeaning } from "../statusMeaning.js";
import type { AnyHeaders } from "./collectFields.js";
import { type FieldNames, standardNames } from "./fieldNames.js";
import { readLimits } from "./quotas.js";

/** What the headers of an answer ask of the client. */
export interface AnswerHeaders {
  /**
   * How long to stay away, in whole microseconds; 0 when nothing is said.
   *
   * What a retry hint asks for; without one, and with a status that can mean "too many requests", the reset of the bucket
   * that is empty.
   */
  readonly retryAfterUs: number;
  /** Nothing remains in the bucket that binds. */
  readonly isExhausted: boolean;
  /** Whole requests that remain in the bucket that binds; -1 when nothing is said. */
  readonly remaining: number;
  /** When that bucket resets, in whole microseconds from now, rounded up; 0 when nothing is said. */
  readonly resetUs: number;
  /** Where it stands, for people: the field that asks to wait, else the family of the bucket; empty when nothing is said. */
  readonly field: string;
}

/** Reads what the headers of an answer ask for. Never throws. The clock is asked only when a header needs it. */
export type HeaderReader = (headers: AnyHeaders, wallMs: number | (() => number), status: number) => AnswerHeaders;

/** The answer to headers that say nothing. It is always this object. */
export const nothingSaid: AnswerHeaders = Object.freeze({
  retryAfterUs: 0,
  isExhausted: false,
  remaining: -1,
  resetUs: 0,
  field: "",
});

/**
 * Makes a reader of the fields with these names. Headers that throw count as absent. Times are at most 100 years.
 *
 * Budgets that count something else than requests of the host are passed over: tokens, say, or one of several resources.
 * Zero and a past time are no retry hint. With an `Age` above 0 the answer came from a cache: quotas are ignored, and a
 * retry hint is not, since waiting too long is the smaller mistake.
 */
export function headerReader(names: FieldNames): HeaderReader {
  return (headers, wall, status) => {
    const wallMs = typeof wall === "number" ? () => wall : wall;
    const said = readLimits(headers, { names, wallMs, resetUnitMs: 1_000, isForHost: true });
    if (said === undefined) return nothingSaid;
    const { binding, hint } = said;
    const isAsked = hint !== undefined && hint.waitMs > 0;
    if (binding === undefined && !isAsked) return nothingSaid;

    const isExhausted = binding?.remaining === 0;
    const resetUs = microseconds(binding?.resetMs);
    const isRefused = isExhausted && statusMeaning(status, false, true) === "rate_limited";
    return {
      retryAfterUs: isAsked ? microseconds(hint.waitMs) : isRefused ? resetUs : 0,
      isExhausted,
      remaining: binding?.remaining ?? -1,
      resetUs,
      field: isAsked ? hint.field : (binding?.label ?? ""),
    };
  };
}

/** Reads `Retry-After`, `RateLimit` of every draft and `X-RateLimit-*`, for programs that do not carry the vendors' fields. */
export const readStandardAnswer: HeaderReader = headerReader(standardNames);

function microseconds(ms: number | undefined): number {
  return ms === undefined ? 0 : Math.min(ms * 1_000, maxDurationUs);
}
