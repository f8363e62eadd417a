import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFaster, readRate, readRefill, readWindow } from "../../src/policy/rate.js";
import { unwrap } from "../../src/policy/reading.js";

const rateOf = (value: unknown) => unwrap(readRate(value), "rate");
const refillOf = (value: unknown) => unwrap(readRefill(rateOf(value)), "rate");
const windowOf = (value: unknown) => unwrap(readWindow(rateOf(value)), "window");

describe("a rate as a bucket", () => {
  it.each([
    ["1/s", 1, 1_000_000],
    ["60/min", 1, 1_000_000],
    ["1/3s", 1, 3_000_000],
    ["0.5/s", 1, 2_000_000],
    ["2.5/s", 1, 400_000],
    ["7/s", 7, 1_000_000],
    ["10/1h", 1, 360_000_000],
    ["5/500ms", 1, 100_000],
    ["5/ms", 1, 200],
    ["0.1/s", 1, 10_000_000],
    ["3/sec", 3, 1_000_000],
    ["3/second", 3, 1_000_000],
    ["3/m", 1, 20_000_000],
    ["3/minute", 1, 20_000_000],
    ["3/hour", 1, 1_200_000_000],
    ["3/d", 1, 28_800_000_000],
    ["3/day", 1, 28_800_000_000],
    ["3 / 2 min", 1, 40_000_000],
    [{ count: 0.1, per: "1s" }, 1, 10_000_000],
    [{ count: 5, per: 1_000 }, 1, 200_000],
    [{ count: 1, per: 1_000 / 3 }, 1, 333_334],
  ])("%j gives back %d each %d microseconds", (value, rateCount, ratePerUs) => {
    expect(refillOf(value)).toEqual({ rateCount, ratePerUs });
  });

  it("rounds a rate down that has more digits than whole numbers can count, by a thousandth at most", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constantFrom(1 / 3, 40 / 60, Math.PI), fc.double({ min: 1e-3, max: 1e6, noNaN: true })),
        fc.integer({ min: 1, max: 1000 }),
        (count, burst) => {
          const written = rateOf({ count, per: "1s" });
          const { rateCount, ratePerUs } = unwrap(readRefill(written, burst), "rate");
          const { top, bottom } = written.count;
          const [ours, exact] = [BigInt(rateCount) * bottom * 1_000_000n, top * BigInt(ratePerUs)];
          expect(ours <= exact && ours * 1_001n >= exact * 1_000n).toBe(true);
          expect(burst * ratePerUs).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
        },
      ),
    );
    expect(() => refillOf({ count: 1e300, per: 1 })).toThrow("at most a million starts per microsecond");
    expect(() => refillOf({ count: 1e-30, per: 1 })).toThrow("slower than whole numbers can count");
  });

  it("never drifts: the refill is exactly the decimal that was written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99_999 }), fc.integer({ min: 0, max: 4 }), (digits, places) => {
        const { rateCount, ratePerUs } = refillOf({ count: Number(`${digits}e-${places}`), per: "1s" });
        expect(BigInt(rateCount) * 1_000_000n * 10n ** BigInt(places)).toBe(BigInt(digits) * BigInt(ratePerUs));
      }),
    );
  });
});

describe("a rate as a window", () => {
  it.each([
    ["60/min", 60, 60_000_000, 1],
    ["0.5/s", 1, 2_000_000, 1],
    ["2.5/s", 2, 1_000_000, 1],
    ["54.9/min", 54, 60_000_000, 1],
    ["0.3/s", 1, 3_333_334, 1],
    [{ count: 1 / 3, per: "1s" }, 1, 3_000_001, 1],
    [{ count: 40 / 60, per: "1s" }, 1, 1_500_001, 1],
    [{ count: Math.PI, per: "1s" }, 3, 1_000_000, 1],
    ["1000/day", 1_000, 86_400_000_000, 1],
    ["4096/s", 4_096, 1_000_000, 1],
    ["4097/s", 4_097, 1_000_000, 977],
    ["6000/min", 6_000, 60_000_000, 58_594],
  ])("%j is %d in %d microseconds with a grain of %d", (value, count, perUs, grainUs) => {
    expect(windowOf(value)).toEqual({ count, perUs, grainUs });
  });

  it("refuses counts beyond reason and decimals that stretch the window over a century", () => {
    expect(() => windowOf("1e13/s")).toThrow("at most 1000000000000 in a window");
    expect(() => windowOf("0.000000001/h")).toThrow("100 years");
  });
});

describe("readRate", () => {
  it.each([
    "",
    "fast",
    "1",
    "1/",
    "/s",
    "1/5",
    "-1/s",
    "1/-1s",
    "1/s/s",
    "1/week",
    "1/S",
    " 1/s",
    "NaN/s",
    "Infinity/s",
    "0/s",
    "0.0/s",
    "1/0s",
    "1/200y",
    "1/40000d",
    5,
    null,
    undefined,
    true,
    [],
    ["1/s"],
    {},
    { count: 1 },
    { per: "1s" },
    { count: "1", per: "1s" },
    { count: 0, per: "1s" },
    { count: -1, per: "1s" },
    { count: Number.NaN, per: "1s" },
    { count: Number.POSITIVE_INFINITY, per: "1s" },
    { count: 1, per: 0 },
    { count: 1, per: Number.POSITIVE_INFINITY },
  ])("refuses %j", (value) => {
    expect(readRate(value).ok).toBe(false);
  });

  it.each([
    ["60/minute", "60/min"],
    ["100/60s", "100/min"],
    ["10/1h", "10/h"],
    ["1000/d", "1000/day"],
    ["1 / 3 s", "1/3s"],
    ["0.5/s", "0.5/s"],
    ["100/15min", "100/15min"],
    ["5/1500ms", "5/1.5s"],
    [{ count: 5, per: "2s" }, "5/2s"],
    [{ count: 2.5, per: 1_000 }, "2.5/s"],
  ])("writes %j as %j for people", (value, text) => {
    expect(rateOf(value).text).toBe(text);
  });
});

describe("isFaster", () => {
  it.each([
    ["2/s", "1/s", true],
    ["1/s", "60/min", false],
    ["60/min", "1/s", false],
    ["0.5/s", "1/3s", true],
    ["1/day", "1/h", false],
  ])("%s faster than %s: %s", (first, second, answer) => {
    expect(isFaster(rateOf(first), rateOf(second))).toBe(answer);
  });
});
