import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/policy/compileRule.js";
import type { Limits } from "../../../src/policy/types.js";

describe("an entry with adaptive", () => {
  it.each<[Limits, { baseUs: number; slowestUs: number } | undefined]>([
    [{}, undefined],
    [{ adaptive: false, rate: "1/s" }, undefined],
    [{ adaptive: true, enabled: false, rate: "1/s" }, undefined],
    [{ adaptive: true }, { baseUs: 0, slowestUs: 0 }],
    [{ adaptive: {} }, { baseUs: 0, slowestUs: 0 }],
    [
      { adaptive: true, concurrency: 4 },
      { baseUs: 0, slowestUs: 0 },
    ],
    [
      { adaptive: true, quota: { count: 10, per: "day" } },
      { baseUs: 0, slowestUs: 0 },
    ],
    [
      { adaptive: true, rate: "3/s", burst: 9 },
      { baseUs: 333_334, slowestUs: 0 },
    ],
    [
      { adaptive: true, rate: "2/s", minDelay: 700 },
      { baseUs: 700_000, slowestUs: 0 },
    ],
    [
      { adaptive: true, rate: "2/s", window: ["10/s", "60/min"] },
      { baseUs: 1_000_000, slowestUs: 0 },
    ],
    [
      { adaptive: { min: "1/min" }, rate: "2/s" },
      { baseUs: 500_000, slowestUs: 60_000_000 },
    ],
    [
      { adaptive: { max: "1/s" }, rate: "2/s" },
      { baseUs: 1_000_000, slowestUs: 0 },
    ],
    [
      { adaptive: { max: "4/s" }, rate: "2/s" },
      { baseUs: 500_000, slowestUs: 0 },
    ],
    [{ adaptive: { min: "0.01/100d", max: "2/s" } }, { baseUs: 500_000, slowestUs: 864_000_000_000_000 }],
  ])("knows full speed and the slowest: %j", (limits, adaptive) => {
    expect(compileRule(limits).adaptive).toEqual(adaptive);
  });

  it("keeps the interval of max between any two starts, and says whose it is", () => {
    const rule = compileRule({ rate: "10/s", burst: 5, adaptive: { max: "4/s" } });
    expect(rule.gapUs).toBe(250_000);
    expect(rule.text.minDelay).toBe("250 ms (adaptive.max 4/s)");
    const own = compileRule({ minDelay: "1s", adaptive: { max: "4/s" } });
    expect([own.gapUs, own.text.minDelay]).toEqual([1_000_000, "1 s"]);
  });
});
