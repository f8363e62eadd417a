import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRetryAfter } from "../../../src/http/headers/retryAfter.js";
import cases from "../../fixtures/retry-after.json" with { type: "json" };
import { seeded } from "../../laws/seeded.js";

const nowMs = Date.UTC(2026, 2, 1);
const most = Number.MAX_SAFE_INTEGER;

describe("parseRetryAfter", () => {
  it.each(cases)("reads $header at $nowIso as $expectMs: $why ($tier)", ({ header, nowIso, expectMs }) => {
    expect(parseRetryAfter(header, Date.parse(nowIso))).toBe(expectMs);
  });

  it.each<[string | null | undefined]>([[null], [undefined], [""], [" \t "], ["\u00a0"], ["\n"]])(
    "takes %j for absent",
    (value) => {
      expect(parseRetryAfter(value, nowMs)).toBeNull();
    },
  );

  it.each([
    ["0", 0],
    ["0.0", 0],
    ["2.0", 2_000],
    ["0.3", 300],
    ["1.001", 1_001],
    ["0.0001", 1],
    ["1.0010000", 1_001],
    ["1.00100001", 1_002],
    ["\t7 ", 7_000],
    ["9007199254740.991", most],
    ["9007199254740.990", most - 1],
    ["9007199254740.9901", most],
    ["9007199254741", most],
    ["9".repeat(400), most],
    [`${"0".repeat(400)}5`, 5_000],
  ])("reads the seconds %j exactly, rounded up, as %d", (value, ms) => {
    expect(parseRetryAfter(value, nowMs)).toBe(ms);
  });

  it.each([
    ["30,90", 90_000],
    ["90 ,\t30", 90_000],
    ["5, 5", 5_000],
    [`1, ${"9".repeat(30)}`, most],
    ["30, 1.5", null],
    ["30,", null],
    [",30", null],
    ["30,,90", null],
    ["30, later", null],
    ["30, Sun, 01 Mar 2026 01:00:00 GMT", null],
    ["Sun, 01 Mar 2026 01:00:00 GMT, Sun, 01 Mar 2026 01:00:00 GMT", null],
  ])("takes the largest of the lines %j, if all are whole", (value, ms) => {
    expect(parseRetryAfter(value, nowMs)).toBe(ms);
  });

  it.each([
    "+5",
    "-0",
    "1.",
    ".5",
    "1.5.0",
    "1 5",
    "0x10",
    "1_000",
    "5s",
    "5 seconds",
    "Infinity",
    "NaN",
    "\uff15",
    "\u0665",
    "5\u00a0",
    "5;",
    '"5"',
    "2026-03-01",
    "2026-03-01T00:01:00",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T00:00:00+24:00",
    "Sun, 31 Feb 2026 00:00:00 GMT",
    "Sun, 29 Feb 2026 00:00:00 GMT",
    "Sun, 00 Mar 2026 00:00:00 GMT",
    "Sun, 01 Foo 2026 00:00:00 GMT",
    "Sun, 01 Mar 2026 25:00:00 GMT",
    "Sun, 01 Mar 2026 24:00:00 GMT",
    "Sun, 01 Mar 2026 00:60:00 GMT",
    "Sun, 01 Mar 2026 00:00:61 GMT",
    "Sun, 01 Mar 2026 00:00:05 CET",
    "Sun, 01 Mar 2026 00:00:05",
    "Xyz, 01 Mar 2026 00:00:05 GMT",
    "Sunday, 31-Apr-26 00:00:00 GMT",
    "Sun Feb 30 00:00:10 2026",
    "Sun, 01 Mar 2026 00:00:05 GMT x",
  ])("refuses %j", (value) => {
    expect(parseRetryAfter(value, nowMs)).toBeNull();
  });

  it.each([
    ["Sun, 01 Mar 2026 00:00:00 GMT", 0],
    ["Sun, 01 Mar 2026 00:00:60 GMT", 60_000],
    ["Sun, 01 Mar 2026 00:00:05 UTC", 5_000],
    ["Sun, 01 Mar 2026 00:00:05 +0000", 5_000],
    ["Sun, 01 Mar 2026 01:00:05 +0100", 5_000],
    ["Sat, 28 Feb 2026 18:30:05 -05:30", 5_000],
    ["Sunday, 01-Mar-26 02:00:05 +0200", 5_000],
    ["sun, 01 mar 2026 00:00:05 gmt", 5_000],
    ["Sun Mar 01 00:00:10 2026", 10_000],
    ["Sun Mar 15 00:00:00 2026", 14 * 86_400_000],
    ["Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799_000 - nowMs],
    ["Sat, 01 Jan 0026 00:00:00 GMT", 0],
    ["Tue, 29 Feb 2028 00:00:00 GMT", 730 * 86_400_000],
    ["2026-03-01T00:01Z", 60_000],
    ["2026-03-01T00:00:00.5Z", 500],
    ["2026-03-01T00:00:00.0001Z", 1],
    ["2026-03-01T01:01:00+01:00", 60_000],
    ["2026-02-28T23:01:00-0100", 60_000],
    ["2026-03-01T01:01:00+01", 60_000],
    ["2026-02-28T23:59:60Z", 0],
    ["1999-01-01T00:00:00Z", 0],
  ])("reads the date %j as %d ms ahead", (value, ms) => {
    expect(parseRetryAfter(value, nowMs)).toBe(ms);
  });

  it("rounds the wait up when the clock is between two milliseconds", () => {
    expect(parseRetryAfter("Sun, 01 Mar 2026 00:00:05 GMT", nowMs + 0.25)).toBe(5_000);
    expect(parseRetryAfter("Sun, 01 Mar 2026 00:00:05 GMT", nowMs + 0.25 + 4_999)).toBe(1);
  });

  it("resolves a two-digit year to the latest that is at most 50 years ahead", () => {
    const in50Years = Date.UTC(2076, 2, 1) - nowMs;
    expect(parseRetryAfter("Sunday, 01-Mar-76 00:00:00 GMT", nowMs)).toBe(in50Years);
    expect(parseRetryAfter("Sunday, 01-Mar-76 00:00:01 GMT", nowMs)).toBe(0);

    const late = Date.UTC(2080, 0, 1);
    expect(parseRetryAfter("Friday, 01-Jan-10 00:00:00 GMT", late)).toBe(Date.UTC(2110, 0, 1) - late);
    expect(parseRetryAfter("Friday, 01-Jan-79 00:00:00 GMT", late)).toBe(0);
  });

  it("knows that 2000 had a 29 February though 2100 has none", () => {
    expect(parseRetryAfter("Tuesday, 29-Feb-00 00:00:00 GMT", nowMs)).toBe(0);
  });

  it("needs a clock for dates only", () => {
    for (const noTime of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(parseRetryAfter("5", noTime)).toBe(5_000);
      expect(parseRetryAfter("Sun, 01 Mar 2026 00:00:05 GMT", noTime)).toBeNull();
      expect(parseRetryAfter("Sunday, 01-Mar-26 00:00:05 GMT", noTime)).toBeNull();
    }
    expect(parseRetryAfter("Sun, 01 Mar 2026 00:00:05 GMT", -1e300)).toBe(most);
    expect(parseRetryAfter("Sun, 01 Mar 2026 00:00:05 GMT", 1e300)).toBe(0);
  });

  it("reads a number however long it is written", () => {
    expect(parseRetryAfter("9".repeat(8_192), nowMs)).toBe(most);
    expect(parseRetryAfter("9".repeat(9_000), nowMs)).toBe(most);
    expect(parseRetryAfter(`${"0".repeat(9_000)}5`, nowMs)).toBe(5_000);
    expect(parseRetryAfter(`${"9".repeat(9_000)}, 5`, nowMs)).toBe(most);
    expect(parseRetryAfter(`5${" ".repeat(1_000_000)}`, nowMs)).toBe(5_000);
    expect(parseRetryAfter(`5${" ".repeat(1_000_000)}x`, nowMs)).toBeNull();
  });
});

describe("parseRetryAfter, for any input", () => {
  const instants = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(9999, 11, 31) });

  it("reads what Date writes, in both its standard forms", () => {
    fc.assert(
      fc.property(instants, instants, (atMs, fromMs) => {
        const second = Math.floor(atMs / 1_000) * 1_000;
        expect(parseRetryAfter(new Date(second).toUTCString(), fromMs)).toBe(Math.max(0, second - fromMs));
        expect(parseRetryAfter(new Date(atMs).toISOString(), fromMs)).toBe(Math.max(0, atMs - fromMs));
      }),
      seeded(2_000),
    );
  });

  it("never throws and gives null or a whole number from 0 to 2^53-1", () => {
    const piece = fc.constantFrom(
      ..."0159.,:+-/ \tTZe".split(""),
      "Sun",
      "Sunday",
      ", ",
      "Mar",
      "01",
      "2026",
      "00:00:60",
      "GMT",
    );
    const hostile = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
    const anyText = fc.oneof(
      hostile,
      fc.string({ unit: "binary" }),
      fc.constantFrom(...cases.map((one) => one.header)),
    );
    fc.assert(
      fc.property(fc.option(anyText), fc.oneof(instants, fc.double()), (value, fromMs) => {
        const ms = parseRetryAfter(value, fromMs);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
      seeded(5_000),
    );
  });

  it("stays fast on the longest values it looks at", () => {
    const bodies = ["9", " ", ",", "1,", "9 ", "0.", "Sun, ", "-", "\t9"];
    const startedMs = performance.now();
    for (const body of bodies) {
      for (const end of ["", "x", "9", ","]) {
        parseRetryAfter(`1${body.repeat(Math.floor(8_000 / body.length))}${end}`, nowMs);
      }
    }
    // Quadratic work on any of them would take a hundred times as long as this generous bound allows.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});
