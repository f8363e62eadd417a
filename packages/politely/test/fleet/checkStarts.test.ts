import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../laws/seeded.js";
import type { Start } from "../oracle/trace.js";
import { specViolation } from "../oracle/violations.js";
import { checkStarts, checkTokens, type LoggedStart, type StartRule } from "./checkStarts.js";

function at(...instants: readonly number[]): LoggedStart[] {
  return instants.map((startedUs) => ({ key: "k", startedUs }));
}

/** What is found, in short: the kind, the instant, and how many too many. */
function found(starts: readonly LoggedStart[], rule: StartRule): string[] {
  return checkStarts(starts, rule).map(({ kind, startedUs, extra }) => `${kind} at ${startedUs}: ${extra}`);
}

describe("checkStarts", () => {
  it("finds each start that is closer than the gap, also when the log is out of order", () => {
    expect(found(at(0, 10, 20), { gapUs: 10 })).toEqual([]);
    expect(found(at(19, 0, 10), { gapUs: 10 })).toEqual(["gap at 19: 1"]);
    expect(found(at(0, 0, 9), { gapUs: 10 })).toEqual(["gap at 0: 1", "gap at 9: 2"]);
  });

  it("finds each start beyond the rate, wherever the span begins, and how far beyond", () => {
    const rate = { count: 2, perUs: 1_000, burst: 2 };
    expect(found(at(0, 0, 500, 1_000), { rate })).toEqual([]);
    expect(found(at(0, 0, 499), { rate })).toEqual(["rate at 499: 1"]);
    expect(found(at(0, 9_000, 9_000, 9_499, 9_500), { rate })).toEqual(["rate at 9499: 1", "rate at 9500: 1"]);
    expect(found(at(0, 0, 0, 0, 0), { rate })).toEqual(["rate at 0: 1", "rate at 0: 2", "rate at 0: 3"]);
  });

  it("finds each start that is one too many in a window, and lets one exactly P later pass", () => {
    expect(found(at(0, 10, 100), { windows: [{ count: 2, perUs: 100 }] })).toEqual([]);
    expect(found(at(0, 10, 99, 100), { windows: [{ count: 2, perUs: 100 }] })).toEqual([
      "window at 99: 1",
      "window at 100: 1",
    ]);
    const both = [
      { count: 9, perUs: 9 },
      { count: 1, perUs: 6 },
    ];
    expect(found(at(0, 5), { windows: both })).toEqual(["window at 5: 1"]);
  });

  it("counts units in rate and windows, and requests in gaps", () => {
    const heavy: LoggedStart[] = [{ key: "k", startedUs: 0, units: 3 }, ...at(5)];
    expect(found(heavy, { windows: [{ count: 3, perUs: 10 }] })).toEqual(["window at 5: 1"]);
    expect(found(heavy, { rate: { count: 1, perUs: 5, burst: 3 } })).toEqual([]);
    expect(found(heavy, { rate: { count: 1, perUs: 6, burst: 3 } })).toEqual(["rate at 5: 1"]);
    expect(found(heavy, { gapUs: 5 })).toEqual([]);
  });

  it("finds a start beyond the places that are held, by intervals", () => {
    const held = (startedUs: number, releasedUs: number): LoggedStart => ({ key: "k", startedUs, releasedUs });
    expect(found([held(0, 10), held(5, 15), held(10, 20)], { concurrency: 2 })).toEqual([]);
    expect(found([held(0, 10), held(5, 15), held(9, 20)], { concurrency: 2 })).toEqual(["concurrency at 9: 1"]);
    expect(found([held(0, 10), held(5, 15), held(9, 20)], { concurrency: 1 })).toEqual([
      "concurrency at 5: 1",
      "concurrency at 9: 2",
    ]);
  });

  it("counts a place that was never released as held for ever, or as long as the rule says", () => {
    expect(found(at(0, 1_000_000), { concurrency: 1 })).toEqual(["concurrency at 1000000: 1"]);
    expect(found(at(0, 50), { concurrency: 1, heldUs: 50 })).toEqual([]);
    expect(found(at(0, 49), { concurrency: 1, heldUs: 50 })).toEqual(["concurrency at 49: 1"]);
  });

  it("leaves out what came back unused, except for the place it held", () => {
    const unused: LoggedStart = { key: "k", startedUs: 5, releasedUs: 12, unused: true };
    const pacing = { gapUs: 10, windows: [{ count: 1, perUs: 10 }], rate: { count: 1, perUs: 10, burst: 1 } };
    expect(found([...at(0, 10), unused], pacing)).toEqual([]);
    expect(found([unused, ...at(10)], { concurrency: 1 })).toEqual(["concurrency at 10: 1"]);
  });

  it("finds a start inside a hold, and allows both its ends", () => {
    expect(found(at(5, 9, 10), { holds: [{ fromUs: 5, untilUs: 10 }] })).toEqual(["hold at 9: 1"]);
  });

  it("judges each key by itself, and says which one it was", () => {
    const starts = [...at(0, 10), { key: "other", startedUs: 5 }, { key: "other", startedUs: 6 }];
    expect(checkStarts(starts, { gapUs: 10 })).toMatchObject([{ key: "other", startedUs: 6 }]);
    const together = starts.map((start) => ({ ...start, key: "all" }));
    expect(checkStarts(together, { gapUs: 10 })).toHaveLength(3);
  });

  it("forgives as much as the slack, and no more", () => {
    expect(found(at(0, 8), { gapUs: 10, slackUs: 2 })).toEqual([]);
    expect(found(at(0, 7), { gapUs: 10, slackUs: 2 })).toEqual(["gap at 7: 1"]);
    const rate = { count: 1, perUs: 10, burst: 1 };
    expect(found(at(0, 8, 18), { rate, slackUs: 2 })).toEqual([]);
    expect(found(at(0, 7), { rate, slackUs: 2 })).toEqual(["rate at 7: 1"]);
    expect(found(at(0, 8), { windows: [{ count: 1, perUs: 10 }], slackUs: 2 })).toEqual([]);
    expect(found(at(0, 7), { windows: [{ count: 1, perUs: 10 }], slackUs: 2 })).toEqual(["window at 7: 1"]);
    expect(found(at(0, 8), { concurrency: 1, heldUs: 10, slackUs: 2 })).toEqual([]);
    expect(found(at(8), { holds: [{ fromUs: 0, untilUs: 10 }], slackUs: 2 })).toEqual([]);
  });

  it("is exact where numbers are large, and refuses what it could not be exact about", () => {
    const rate = { count: 1, perUs: 2 ** 40, burst: 1 };
    expect(found(at(0, 2 ** 40), { rate })).toEqual([]);
    expect(found(at(0, 2 ** 40 - 1), { rate })).toEqual([`rate at ${2 ** 40 - 1}: 1`]);
    expect(() => found(at(0), { rate: { count: 1, perUs: 2 ** 52, burst: 4 } })).toThrow("Too large to check exactly");
  });

  it.each([
    ["an instant that is no number", { startedUs: Number.NaN }],
    ["an instant between two microseconds", { startedUs: 0.5 }],
    ["a release that is no number", { startedUs: 0, releasedUs: Number.NaN }],
    ["half a unit", { startedUs: 0, units: 0.5 }],
  ])("refuses a log with %s", (_title, wrong) => {
    expect(() => checkStarts([{ key: "k", ...wrong }], {})).toThrow(TypeError);
  });

  it.each([
    ["a gap that is no number", { gapUs: Number.NaN }],
    ["a window of 0", { windows: [{ count: 0, perUs: 1 }] }],
    ["no places", { concurrency: 0 }],
    ["a rate without burst", { rate: { count: 1, perUs: 1, burst: 0 } }],
  ])("refuses a rule with %s", (_title, wrong) => {
    expect(() => checkStarts([], wrong)).toThrow(TypeError);
  });

  it("finds something exactly where the oracle of one process does", () => {
    const span = fc.integer({ min: 1, max: 40 });
    const count = fc.integer({ min: 1, max: 4 });
    const start = fc.record({
      startedUs: fc.integer({ min: 0, max: 120 }),
      units: fc.integer({ min: 1, max: 3 }),
      heldUs: fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
      unused: fc.boolean(),
    });
    const rule = fc.record(
      {
        gapUs: span,
        rate: fc.record({ count, perUs: span, burst: count }),
        windows: fc.array(fc.record({ count, perUs: span }), { maxLength: 2 }),
        concurrency: count,
      },
      { requiredKeys: [] },
    );
    const verdicts = { kept: 0, broken: 0 };
    fc.assert(
      fc.property(fc.array(start, { maxLength: 8 }), rule, (rows, limits) => {
        const starts = rows.map(({ heldUs, ...row }): LoggedStart => {
          return { key: "k", ...row, ...(heldUs === undefined ? {} : { releasedUs: row.startedUs + heldUs }) };
        });
        const trace = starts.map(({ startedUs: atUs, units: cost = 1, unused = false, releasedUs }): Start => {
          return { atUs, cost, unused, releasedUs };
        });
        const isBroken = specViolation(trace, { ...limits, maxHoldUs: Number.POSITIVE_INFINITY }) !== undefined;
        verdicts[isBroken ? "broken" : "kept"] += 1;
        expect(checkStarts(starts, limits).length > 0).toBe(isBroken);
      }),
      seeded(2_000),
    );
    expect(Math.min(verdicts.kept, verdicts.broken)).toBeGreaterThan(100);
  });
});

describe("checkTokens", () => {
  const start = (startedUs: number, token: number, key = "k"): LoggedStart => ({ key, startedUs, token });

  it("finds a token that came twice, and one that went back", () => {
    expect(checkTokens([start(0, 1), start(5, 2), start(5, 3), start(9, 2, "other")])).toEqual([]);
    expect(checkTokens([start(0, 1), start(5, 1)])).toMatchObject([{ kind: "token", startedUs: 5, extra: 1 }]);
    expect(checkTokens([start(0, 4), start(5, 3), start(7, 4)])).toMatchObject([{ startedUs: 5 }, { startedUs: 7 }]);
  });

  it("refuses a log without tokens", () => {
    expect(() => checkTokens(at(0, 1))).toThrow("has no token");
  });
});
