import { describe, expect, it } from "vitest";
import { type AnswerKind, isBadAnswer } from "../../src/core/answer.js";
import { statusMeaning } from "../../src/http/statusMeaning.js";

/** Every status from 100 to 599 that means `kind`. */
function statusesThatMean(kind: string, hasRetryAfter: boolean, isExhausted = false): number[] {
  return Array.from({ length: 500 }, (_, index) => 100 + index).filter(
    (status) => statusMeaning(status, hasRetryAfter, isExhausted) === kind,
  );
}

function range(from: number, to: number, without: readonly number[] = []): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((each) => !without.includes(each));
}

describe("the meaning of a status", () => {
  const throttles = [418, 420, 429, 509, 529];

  it("is rate_limited for the statuses that sites use to say so", () => {
    expect(statusesThatMean("rate_limited", false)).toEqual(throttles);
  });

  it("is rate_limited for a 403, a 413 and a 503 too when they say how long to wait, and for no other status", () => {
    expect(statusesThatMean("rate_limited", true)).toEqual([403, 413, 418, 420, 429, 503, 509, 529]);
  });

  it("is rate_limited for a 403 of which nothing remains, and not for such a 503", () => {
    expect(statusesThatMean("rate_limited", false, true)).toEqual([403, ...throttles]);
  });

  it("is server_error for the other 5xx, and for a 408", () => {
    expect(statusesThatMean("server_error", false)).toEqual([408, ...range(500, 599, throttles)]);
    expect(statusesThatMean("server_error", true)).toEqual([408, ...range(500, 599, [...throttles, 503])]);
  });

  it.each([false, true])("is success for every 2xx and 3xx, told to wait or not (%s)", (isToldToWait) => {
    expect(statusesThatMean("success", isToldToWait)).toEqual(range(200, 399));
  });

  it("is neutral for the other 4xx and for 1xx", () => {
    expect(statusesThatMean("neutral", false)).toEqual([...range(100, 199), ...range(400, 499, [408, 418, 420, 429])]);
    expect(statusMeaning(0, false, false)).toBe("neutral");
  });
});

it("is a bad answer that holds the host: too many requests, a server error, no answer in time", () => {
  const kinds: (AnswerKind | "unused")[] = ["success", "rate_limited", "server_error", "timeout", "neutral", "unused"];
  expect(kinds.filter(isBadAnswer)).toEqual(["rate_limited", "server_error", "timeout"]);
});
