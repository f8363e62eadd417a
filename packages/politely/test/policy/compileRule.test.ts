import { describe, expect, it } from "vitest";
import { compileRule, compileSharedRule } from "../../src/policy/compileRule.js";
import type { Limits } from "../../src/policy/types.js";

describe("compileRule", () => {
  it("fills in every default", () => {
    expect(compileRule({})).toEqual({
      enabled: true,
      gapUs: 0,
      rateCount: 0,
      ratePerUs: 0,
      burst: 1,
      windows: [],
      quota: undefined,
      concurrency: Number.POSITIVE_INFINITY,
      fromAnswer: false,
      backoff: { kind: "linear", baseUs: 5_000_000, maxUs: 30_000_000, jitter: 0 },
      cooldownUs: [60_000_000],
      maxWaitUs: Number.POSITIVE_INFINITY,
      maxQueue: 100_000,
      maxHoldUs: 600_000_000,
      permitTtlUs: 30_000_000,
      text: { minDelay: undefined, rate: undefined, windows: [], quota: undefined, concurrency: undefined },
    });
  });

  it.each<[Limits, object]>([
    [{ minDelay: "2s" }, { gapUs: 2_000_000, text: { minDelay: "2 s" } }],
    [{ minDelay: 0 }, { enabled: true, gapUs: 0, text: { minDelay: undefined } }],
    [
      { rate: "0.5/s", burst: 5 },
      { rateCount: 1, ratePerUs: 2_000_000, burst: 5, text: { rate: "0.5/s burst 5" } },
    ],
    [{ rate: "60/min" }, { burst: 1, text: { rate: "60/min" } }],
    [{ window: "60/min" }, { windows: [{ count: 60, perUs: 60_000_000, grainUs: 1 }], text: { windows: ["60/min"] } }],
    [{ window: ["1/s", "5/min"] }, { text: { windows: ["1/s", "5/min"] } }],
    [
      { quota: { count: 1_000, per: "day" } },
      { quota: { count: 1_000, per: "day", timeZone: "UTC" }, text: { quota: "1000/day UTC" } },
    ],
    [{ quota: { count: 5, per: "month", timeZone: "Asia/Tokyo" } }, { text: { quota: "5/month Asia/Tokyo" } }],
    [
      { concurrency: 4, countFrom: "answer" },
      { concurrency: 4, fromAnswer: true, text: { concurrency: "4" } },
    ],
    [{ backoff: "exponential" }, { backoff: { kind: "exponential", baseUs: 5_000_000, maxUs: 60_000_000, jitter: 0 } }],
    [{ backoff: "none" }, { backoff: { kind: "none" } }],
    [
      { backoff: { kind: "linear", base: "1s", max: "3s", jitter: 0.5 } },
      { backoff: { kind: "linear", baseUs: 1_000_000, maxUs: 3_000_000, jitter: 0.5 } },
    ],
    [{ cooldown: "10s" }, { cooldownUs: [10_000_000] }],
    [{ cooldown: ["10s", "20s", 40_000] }, { cooldownUs: [10_000_000, 20_000_000, 40_000_000] }],
    [
      { maxWait: 0, maxQueue: 0, maxHold: "1min" },
      { maxWaitUs: 0, maxQueue: 0, maxHoldUs: 60_000_000 },
    ],
    [{ maxQueue: Number.POSITIVE_INFINITY }, { maxQueue: Number.POSITIVE_INFINITY }],
  ])("makes %j ready", (limits, part) => {
    expect(compileRule(limits)).toMatchObject(part);
  });

  it("limits nothing when it is turned off, whatever else is written", () => {
    const rule = compileRule({ enabled: false, minDelay: "2s", rate: "1/s", window: "1/s", concurrency: 1 });
    expect(rule).toMatchObject({
      enabled: false,
      gapUs: 0,
      rateCount: 0,
      windows: [],
      concurrency: Number.POSITIVE_INFINITY,
    });
  });
});

describe("compileSharedRule", () => {
  it("bounds no queue unless it is written, and differs in nothing else", () => {
    const maxQueue = Number.POSITIVE_INFINITY;
    expect(compileSharedRule({ rate: "1/s" })).toEqual({ ...compileRule({ rate: "1/s" }), maxQueue });
    expect(compileSharedRule({ enabled: false })).toEqual({ ...compileRule({ enabled: false }), maxQueue });
    expect(compileSharedRule({ maxQueue: 5 }).maxQueue).toBe(5);
  });
});
