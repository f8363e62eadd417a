import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readResetMs } from "../../../src/http/headers/retryAfter.js";
import { seeded } from "../../laws/seeded.js";

const nowMs = Date.UTC(2026, 2, 1);
const nowSeconds = nowMs / 1_000;
const most = Number.MAX_SAFE_INTEGER;

function read(text: string, { unitMs = 1_000, isDelay = false, atMs = nowMs } = {}): number | undefined {
  return readResetMs(text, { nowMs: () => atMs }, unitMs, isDelay);
}

describe("readResetMs", () => {
  it.each<[string, number]>([
    ["0", 0],
    ["60", 60_000],
    ["0.0001", 1],
    ["59.9", 59_900],
    ["999999999", 999_999_999_000],
    ["999999999.9999", 1_000_000_000_000],
    ["1000000000", 0],
    [String(nowSeconds - 1), 0],
    [`${nowSeconds + 1}.25`, 1_250],
    [`${nowSeconds + 1}.2500001`, 1_251],
    ["999999999999", 999_999_999_999_000 - nowMs],
    ["1000000000000", 0],
    [String(nowMs + 1), 1],
    [`${nowMs + 1}.0000001`, 2],
    ["9999999999999", 9_999_999_999_999 - nowMs],
    ["9007199254740991", most],
    ["9".repeat(30), most],
    ["60;w=60", 60_000],
    ["60 ; w=60", 60_000],
    ["30, 90, 60", 90_000],
    ["1;w=1, 33;w=60", 33_000],
    ["1m, 30s", 60_000],
  ])("reads the number %s as %d ms", (text, ms) => {
    expect(read(text)).toBe(ms);
  });

  it.each<[string, number]>([
    ["1h2m3.5s", 3_723_500],
    ["6m0s", 360_000],
    ["12ms", 12],
    ["350us", 1],
    ["350µs", 1],
    ["350Âµs", 1],
    ["1001us", 2],
    ["1ns", 1],
    ["1d2h", 93_600_000],
    ["0s", 0],
    ["0ms", 0],
    ["1.0000001s", 1_001],
    ["0.5ms", 1],
    ["1m0.000001s", 60_001],
    ["90m", 5_400_000],
    ["1s1s", 2_000],
    ["99999999999999999999d", most],
    ["9999999d", 9_999_999 * 86_400_000],
    ["8.64s", 8_640],
    ["7.66s", 7_660],
    ["1.1s", 1_100],
  ])("reads the duration %s as %d ms", (text, ms) => {
    expect(read(text)).toBe(ms);
  });

  it.each<[string, number]>([
    ["Sun, 01 Mar 2026 00:00:09 GMT", 9_000],
    ["Sunday, 01-Mar-26 00:00:09 GMT", 9_000],
    ["Sun Mar  1 00:00:09 2026", 9_000],
    ["2026-03-01T00:05:00.000Z", 300_000],
    ["2026-03-01T00:05:00Z", 300_000],
    ["2026-03-01T00:05Z", 300_000],
    ["2026-03-01T00:05:00.0001Z", 300_001],
    ["2026-03-01T01:05:00+01:00", 300_000],
    ["2026-02-28T23:05:00-01:00", 300_000],
    ["2026-03-01t00:05:00z", 300_000],
    ["2026-03-01T00:05:00", 300_000],
    ["2026-03-01 00:05:00", 300_000],
    ["2026-03-01 00:05:00 UTC", 300_000],
    ["2026-03-01 01:05:00 +0100", 300_000],
    ["Sun Mar 01 2026 00:05:00 GMT+0000 (Coordinated Universal Time)", 300_000],
    ["Sun Mar 01 2026 01:05:00 GMT+0100 (Central European Standard Time)", 300_000],
    ["Sat Feb 28 2026 19:05:00 GMT-0500 (Eastern Standard Time)", 300_000],
    ["Sun Mar 01 2026 00:05:00 GMT+0000", 300_000],
    ["Sun Mar 01 2026 00:05:00 GMT", 300_000],
    ["Sat, 28 Feb 2026 00:00:00 GMT", 0],
    ["Tue, 29 Feb 2028 00:00:00 GMT", 730 * 86_400_000],
    ["2028-02-29T00:00:00Z", 730 * 86_400_000],
    ["Sun, 01 Mar 2026 00:00:60 GMT", 60_000],
    ["2026-03-01T00:00:60Z", 60_000],
  ])("reads the instant %s as %d ms", (text, ms) => {
    expect(read(text)).toBe(ms);
  });

  it.each([
    "",
    " ",
    "-1",
    "-60s",
    "+60",
    "1e3",
    "0x10",
    "soon",
    "n/a",
    "60 s",
    "5 minutes",
    "1h 2m",
    "s",
    "5x",
    "1m30",
    "1.s",
    ".5s",
    "1H",
    "PT30S",
    "30,",
    "30, soon",
    "30, -1",
    "2026-03-01",
    "2026-02-30T00:00:00Z",
    "2026-03-01T25:00:00Z",
    "2026-02-29T00:00:00Z",
    "Sun, 29 Feb 2026 00:00:00 GMT",
    "Sun, 31 Apr 2026 00:00:00 GMT",
    "Sun, 00 Mar 2026 00:00:00 GMT",
    "Xyz, 01 Mar 2026 00:00:00 GMT",
    "Sun, 01 Xyz 2026 00:00:00 GMT",
    "Sun, 01 Mar 2026 24:00:00 GMT",
    "Sun, 01 Mar 2026 00:60:00 GMT",
    "Sun, 01 Mar 2O26 00:00:00 GMT",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "Sun Mar 01 2026 00:05:00",
    "Sun Mar 32 2026 00:05:00 GMT+0000",
    "00:05:00",
    "NaN",
    "Infinity",
    "\u0665",
    "60\u00a0",
  ])("takes %j for absent", (text) => {
    expect(read(text)).toBeUndefined();
  });

  it("takes every number for a delay where the field can be nothing else", () => {
    expect(read("1700000000", { isDelay: true })).toBe(1.7e12);
    expect(read("1.25", { isDelay: true })).toBe(1_250);
  });

  it("takes small numbers for milliseconds where told to", () => {
    expect(read("1500", { unitMs: 1 })).toBe(1_500);
    expect(read("0.1", { unitMs: 1 })).toBe(1);
    expect(read(String(nowSeconds + 2), { unitMs: 1 })).toBe(2_000);
    expect(read("2s", { unitMs: 1 })).toBe(2_000);
  });

  it("needs a clock for instants only", () => {
    expect(read("60", { atMs: Number.NaN })).toBe(60_000);
    expect(read("1m", { atMs: Number.NaN })).toBe(60_000);
    for (const text of ["1700000000", "1700000000000", "Sun, 01 Mar 2026 00:00:09 GMT", "2026-03-01T00:05:00Z"]) {
      expect(read(text, { atMs: Number.NaN })).toBeUndefined();
    }
  });
});

describe("readResetMs, against arithmetic without rounding", () => {
  // Whole numbers of a tiny unit, written out as decimals by hand: nothing of the reader is used to expect its answer.
  const digits = fc.integer({ min: 0, max: 9 });
  const written = (whole: bigint, fraction: readonly number[]): string =>
    fraction.length === 0 ? String(whole) : `${whole}.${fraction.join("")}`;
  const ceil = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator;

  it("reads numbers of every size never early and never a millisecond late", () => {
    const number = fc.tuple(
      fc.bigInt({ min: 0n, max: 2n ** 60n }),
      fc.array(digits, { maxLength: 9 }),
      fc.integer({ min: 0, max: 60 }),
    );
    fc.assert(
      fc.property(number, fc.integer({ min: 0, max: 4e12 }), ([big, fraction, shift], atMs) => {
        const whole = big >> BigInt(shift);
        const scale = 10n ** BigInt(fraction.length);
        const value = whole * scale + BigInt(fraction.join("") || "0");
        const exact =
          value < 10n ** 9n * scale
            ? ceil(value * 1_000n, scale)
            : value < 10n ** 12n * scale
              ? ceil(value * 1_000n, scale) - BigInt(atMs)
              : ceil(value, scale) - BigInt(atMs);
        const expected = exact < 0n ? 0n : exact;
        const ms = BigInt(read(written(whole, fraction), { atMs }) ?? -1);
        return ms === (whole >= BigInt(most) || expected > BigInt(most) ? BigInt(most) : expected);
      }),
      seeded(5_000),
    );
  });

  it("reads durations never early and never a millisecond late", () => {
    const units = {
      ns: 1n,
      us: 10n ** 3n,
      ms: 10n ** 6n,
      s: 10n ** 9n,
      m: 60n * 10n ** 9n,
      h: 3_600n * 10n ** 9n,
      d: 86_400n * 10n ** 9n,
    };
    const part = fc.record({
      whole: fc.bigInt({ min: 0n, max: 100_000n }),
      fraction: fc.array(digits, { maxLength: 6 }),
      unit: fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[])),
    });
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const text = parts.map(({ whole, fraction, unit }) => written(whole, fraction) + unit).join("");
        // In millionths of a nanosecond, which every part is a whole number of.
        const exact = parts.reduce(
          (sum, { whole, fraction, unit }) =>
            sum + (whole * 1_000_000n + BigInt(fraction.join("").padEnd(6, "0"))) * units[unit],
          0n,
        );
        const ms = BigInt(read(text) ?? -1);
        // Up to 64 characters a text is a duration; the parts above stay below that.
        const late = ms - ceil(exact, 10n ** 12n);
        return late === 0n || late === 1n;
      }),
      seeded(5_000),
    );
  });

  it("reads every form in which an instant is written as the same instant", () => {
    const instants = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(instants, instants, (at, atMs) => {
        const second = Math.floor(at / 1_000) * 1_000;
        const date = new Date(second);
        const expected = Math.max(0, second - atMs);
        const [weekday, day, month, year, clock] = date.toUTCString().replace(",", "").split(" ");
        const forms = [
          date.toUTCString(),
          date.toISOString(),
          date.toISOString().replace(".000Z", "Z"),
          `${weekday} ${month} ${day} ${year} ${clock} GMT+0000 (UTC)`,
          `${weekday} ${month} ${day} ${clock} ${year}`,
        ];
        return forms.every((text) => read(text, { atMs }) === expected);
      }),
      seeded(5_000),
    );
  });
});
