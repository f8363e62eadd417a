import { describe, expect, it } from "vitest";
import { decide } from "../../../src/shared/decide.js";
import { freshKey } from "../../../src/shared/keyState.js";
import { memoText, readMemo } from "../../../src/shared/memoText.js";
import type { TakeOperation } from "../../../src/shared/operation.js";

const rule = {
  gapUs: 0,
  rateCount: 1,
  ratePerUs: 1_000,
  burst: 3,
  windows: [],
  quota: 0,
  calendar: "",
  concurrency: 0,
  fromAnswer: false,
};

function take(count: number, sequence: number, rate = 1): TakeOperation {
  const key = { rule, ruleId: "r", cost: { rate, window: 1, quota: 1 }, slowUs: 0, period: undefined };
  const terms = { horizonUs: 10_000, ticket: "t", turnUs: 0, joinedUs: 0, hasMore: true, leaseUs: 1, maxHoldUs: 1 };
  return { kind: "take", asker: "a", sequence, keys: [key, key], count, ...terms, member: "m" };
}

describe("what is remembered of a reply", () => {
  it.each([
    [1, 1],
    [5, 1],
    [8, 2],
  ])("is enough to give it again: %i starts of cost %i", (count, cost) => {
    const states = [freshKey(7), freshKey(7)];
    const operation = take(count, 1, cost);
    const reply = decide(states, operation, 7);
    expect(reply.starts.length).toBeGreaterThan(0);
    expect(readMemo(memoText(reply), operation)).toEqual(reply);
    expect(decide(states, operation, 50)).toEqual(reply);
  });

  it("is short: 1,000 starts of a run take less than 8,000 characters", () => {
    const { starts, ...rest } = decide([freshKey(7), freshKey(7)], take(1, 1), 7);
    const run = Array.from({ length: 1_000 }, (_, index) => ({ ...starts[0], startedUs: 1e15 + 1_000 * index }));
    expect(memoText({ ...rest, starts: run }).length).toBeLessThan(8_000);
  });
});
