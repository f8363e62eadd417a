import { expect, it } from "vitest";
import { keyOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const second = 1_000_000;
const hour = 3_600 * second;

it.each([
  ["bucket", keyOf({ rateCount: 1, ratePerUs: 10 * second })],
  ["gap", keyOf({ gapUs: 10 * second })],
  ["window", keyOf({ windows: [1, 10 * second, 1] })],
  ["gap beyond the rule", keyOf({}, { slowUs: 10 * second })],
])("does not take a %s that was idle for one that has saved up for everybody in line", (_what, host) => {
  const place = new Place();
  const taken = place.start({ host });
  place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: 100 * second } });
  place.take({ host }, { ticket: "first" });
  place.wait(99 * second);
  const { stop } = place.take({ host }, { ticket: "second" }).reply;
  expect(stop?.turnUs).toBe(place.nowUs + second + 10 * second);
  expect(place.wait(second).fit({ host }, 1)).toBe(0);
});

it("never grants a cost that is above the burst of another policy that is in use", () => {
  const place = new Place();
  place.start({ host: keyOf({ rateCount: 1, ratePerUs: second, burst: 2 }) }, { leaseUs: hour });
  const heavy = { host: keyOf({ rateCount: 1, ratePerUs: second, burst: 9 }, { cost: 3 }) };
  expect(place.wait(hour / 2).fit(heavy, 1)).toBe(0);
  expect(place.wait(hour).fit(heavy, 1)).toBe(1);
});

it("keeps a gap beyond the rule from the answer where the rule counts from there", () => {
  const place = new Place();
  const host = keyOf({ concurrency: 4, fromAnswer: true }, { slowUs: 10 * second });
  const taken = place.start({ host }, { leaseUs: hour });
  expect(place.wait(30 * second).fit({ host }, 1)).toBe(0);
  place.settle(["host"], taken);
  expect(place.wait(9 * second).fit({ host }, 1)).toBe(0);
  expect(place.wait(second).fit({ host }, 1)).toBe(1);
});
