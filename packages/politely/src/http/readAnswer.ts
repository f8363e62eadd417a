import { maxDurationUs } from "../core/rule.js";
import { type AnyHeaders, collectFields } from "./headers/collectFields.js";
import { findRates } from "./headers/findRates.js";
import { readRetryHint } from "./headers/retryHint.js";
import { ServerClock } from "./headers/serverClock.js";
import { statusMeaning } from "./statusMeaning.js";

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
  /** Whole units that remain in the bucket that binds; -1 when nothing is said. */
  readonly remaining: number;
  /** When that bucket resets, in whole microseconds from now, rounded up; 0 when nothing is said. */
  readonly resetUs: number;
  /** Where it stands, for people: the field that asks to wait, else the family of the bucket; empty when nothing is said. */
  readonly field: string;
}

/** The answer to headers that say nothing. It is always this object. */
export const nothingSaid: AnswerHeaders = Object.freeze({
  retryAfterUs: 0,
  isExhausted: false,
  remaining: -1,
  resetUs: 0,
  field: "",
});

/**
 * Reads what an answer's headers ask for. Never throws; headers that do count as absent. Times are at most 100 years.
 *
 * The clock is asked only when a header needs it. Zero and a past time are no retry hint. With an `Age` above 0 the answer came from a cache: quotas are ignored, and a
 * retry hint is not, since waiting too long is the smaller mistake.
 */
export function readAnswer(headers: AnyHeaders, wallMs: number | (() => number), status: number): AnswerHeaders {
  const fields = collectFields(headers);
  if (fields === undefined) return nothingSaid;
  const clock = new ServerClock(fields.date, typeof wallMs === "number" ? wallMs : wallMs());
  const { binding } = findRates(fields, clock, 1_000);
  const hint = readRetryHint(fields.waits, clock);
  const isAsked = hint !== undefined && hint.waitUs > 0;
  if (binding === undefined && !isAsked) return nothingSaid;

  const isExhausted = binding?.remaining === 0;
  const resetUs = microseconds(binding?.resetMs);
  const isRefused = isExhausted && statusMeaning(status, false, true) === "rate_limited";
  return {
    retryAfterUs: isAsked ? Math.min(hint.waitUs, maxDurationUs) : isRefused ? resetUs : 0,
    isExhausted,
    remaining: binding?.remaining ?? -1,
    resetUs,
    field: isAsked ? hint.field : (binding?.label ?? ""),
  };
}

function microseconds(ms: number | undefined): number {
  return ms === undefined ? 0 : Math.min(ms * 1_000, maxDurationUs);
}
