import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { durationUs, formatDuration } from "../../src/policy/duration.js";

function parseDuration(value: unknown): number {
  return durationUs(value, "duration", { allowZero: true });
}

describe("a duration", () => {
  it.each([
    [0, 0],
    [1, 1_000],
    [1_500, 1_500_000],
    [0.001, 1],
    [0.1, 100],
    [0.3, 300],
    [1.001, 1_001],
    [1e-7, 1],
    ["0s", 0],
    ["500ms", 500_000],
    ["1.5s", 1_500_000],
    ["0.3s", 300_000],
    [".5s", 500_000],
    ["2m", 120_000_000],
    ["2min", 120_000_000],
    ["2 min", 120_000_000],
    ["1h", 3_600_000_000],
    ["1d", 86_400_000_000],
    ["1e3ms", 1_000_000],
    ["0.0000001s", 1],
    ["36525d", 3_155_760_000_000_000],
  ])("turns %j into %d microseconds", (value, us) => {
    expect(parseDuration(value)).toBe(us);
  });

  it("rounds up to a whole microsecond, so that nothing starts early", () => {
    expect(parseDuration(1_000 / 3)).toBe(333_334);
    expect(parseDuration("0.0000011s")).toBe(2);
  });

  it.each([
    ["5", RangeError],
    ["", RangeError],
    ["s", RangeError],
    ["-1s", RangeError],
    ["+1s", RangeError],
    ["1S", RangeError],
    ["1 week", RangeError],
    ["1s ", RangeError],
    ["1..5s", RangeError],
    ["0x10s", RangeError],
    ["Infinitys", RangeError],
    ["101y", RangeError],
    ["36526d", RangeError],
    ["1e999d", RangeError],
    [`${"9".repeat(100)}s`, RangeError],
    [-1, RangeError],
    [Number.NaN, RangeError],
    [Number.POSITIVE_INFINITY, RangeError],
    [Number.NEGATIVE_INFINITY, RangeError],
    [1e300, RangeError],
    [undefined, TypeError],
    [null, TypeError],
    [true, TypeError],
    [{}, TypeError],
    [["1s"], TypeError],
  ])("refuses %j", (value, errorClass) => {
    expect(() => parseDuration(value)).toThrow(errorClass);
  });

  it("gives whole milliseconds exactly, as a number and as text", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_155_760_000_000 }), (ms) => {
        expect(parseDuration(ms)).toBe(ms * 1_000);
        expect(parseDuration(`${ms}ms`)).toBe(ms * 1_000);
      }),
    );
  });

  it("is the least whole number of microseconds that is not below a decimal", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: 0, max: 9_999_999 }), (whole, decimals) => {
        const text = `${whole}.${String(decimals).padStart(7, "0")}s`;
        const exact = BigInt(whole) * 10_000_000n + BigInt(decimals); // tenths of a microsecond
        expect(BigInt(parseDuration(text))).toBe((exact + 9n) / 10n);
      }),
    );
  });
});

describe("durationUs", () => {
  it("names the field, the rule and the value", () => {
    expect(() => durationUs("soon", "maxWait")).toThrow(/^maxWait must be a length of time.*got "soon"$/);
    expect(() => durationUs(-5, "pause")).toThrow("pause must not be negative; got -5");
    expect(() => durationUs({}, "maxWait")).toThrow(/^maxWait must be .*; got an object$/);
  });

  it("takes 0 and Infinity only where they have a meaning", () => {
    expect(() => durationUs(0, "maxHold")).toThrow("maxHold must be longer than 0; got 0");
    expect(() => durationUs("0ms", "maxHold")).toThrow("longer than 0");
    expect(durationUs(0, "maxWait", { allowZero: true })).toBe(0);
    expect(() => durationUs(Number.POSITIVE_INFINITY, "maxHold")).toThrow("maxHold must be finite; got Infinity");
    expect(durationUs(Number.POSITIVE_INFINITY, "maxWait", { allowInfinity: true })).toBe(Number.POSITIVE_INFINITY);
  });

  it("cuts a long value in its message", () => {
    expect(() => durationUs("x".repeat(5_000), "maxWait")).toThrow(/^.{0,300}$/);
  });
});

describe("formatDuration", () => {
  it.each([
    [0, "0 s"],
    [5, "5 µs"],
    [1_500, "1.5 ms"],
    [500_000, "500 ms"],
    [333_334, "333.334 ms"],
    [2_000_000, "2 s"],
    [1_500_000, "1.5 s"],
    [90_000_000, "90 s"],
    [300_000_000, "5 min"],
    [3_600_000_000, "1 h"],
    [172_800_000_000, "2 d"],
  ])("writes %d microseconds as %j", (us, text) => {
    expect(formatDuration(us)).toBe(text);
  });
});
