import { describe, expect, it } from "vitest";
import { ClosedError } from "../../src/index.js";
import { expectBooks, granted, keyRig, many, rig, track } from "./support.js";

describe("tryAcquire", () => {
  it("grants if a start is possible at this moment, else takes nothing", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    expect(granted(limiter.tryAcquire())).toMatchObject({ startedAtMs: 0, waitedMs: 0 });
    await clock.advance(99);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(1);
    expect(limiter.tryAcquire()).toBeDefined();
    expectBooks(limiter.stats());
  });

  it("never overtakes a waiter, even a heavy one that a light request could pass", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 5 });
    await limiter.acquire({ cost: 4 });
    const heavy = track(limiter.acquire({ cost: 5 }));
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(4_000);
    expect(heavy.state).toBe("done");
    await clock.advance(1_000);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("is refused while somebody waits at a scope it needs too", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { rate: "1/s", burst: 5 } });
    await limiter.acquire("a.org", { cost: 4 });
    const waiting = track(limiter.acquire("a.org", { cost: 5 }));
    await clock.advance(10);
    expect(limiter.tryAcquire("b.org")).toBeUndefined();
    await clock.advance(4_000);
    expect(waiting.state).toBe("done");
  });

  it("is granted at another host while somebody waits at one", async () => {
    const { limiter } = rig({ default: { minDelay: "1s" } });
    void many(3, () => track(limiter.acquire("a.org")));
    expect(limiter.tryAcquire("b.org")).toBeDefined();
  });

  it("takes several units at once", () => {
    const { limiter } = keyRig({ window: "5/min" });
    expect(limiter.tryAcquire({ cost: 3 })).toBeDefined();
    expect(limiter.tryAcquire({ cost: 3 })).toBeUndefined();
    expect(limiter.tryAcquire({ cost: 2 })).toBeDefined();
  });

  it("takes from all scopes or from none", () => {
    const { limiter } = rig({
      hosts: { "a.org": { minDelay: "1s" } },
      default: { minDelay: 0 },
      global: { window: "3/min" },
    });
    expect(limiter.tryAcquire("a.org")).toBeDefined();
    for (let index = 0; index < 10; index += 1) expect(limiter.tryAcquire("a.org")).toBeUndefined();
    expect(limiter.tryAcquire("b.org")).toBeDefined();
    expect(limiter.tryAcquire("b.org")).toBeDefined();
    expect(limiter.tryAcquire("b.org")).toBeUndefined();
  });

  it("throws after close", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    await limiter.close();
    expect(() => limiter.tryAcquire()).toThrow(ClosedError);
  });

  it("is refused during a cooldown and during a pause", () => {
    const { limiter } = rig({ default: { minDelay: 0 } });
    limiter.record("a.org", "rate_limited");
    limiter.pause("b.org");
    expect(limiter.tryAcquire("a.org")).toBeUndefined();
    expect(limiter.tryAcquire("b.org")).toBeUndefined();
    expect(limiter.tryAcquire("c.org")).toBeDefined();
  });
});

describe("check", () => {
  it("takes nothing, however often", () => {
    const { limiter } = keyRig({ window: "1/min" });
    for (let index = 0; index < 1_000; index += 1) expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("leaves no trace of a host it was asked about", () => {
    const { limiter } = rig();
    limiter.check("x.org");
    expect(limiter.stats("x.org")).toBeUndefined();
    expect(limiter.stats()).toEqual([]);
  });

  it("tells the exact wait when nobody is ahead", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100, rate: "1/s", burst: 2, window: "3/10s" });
    const waits: number[] = [];
    for (let index = 0; index < 6; index += 1) {
      waits.push(limiter.check().waitMs);
      await clock.advance(waits[index]);
      granted(limiter.tryAcquire()).release();
    }
    expect(waits).toEqual([0, 100, 900, 9_000, 100, 900]);
  });

  it("counts those already waiting as ahead", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    void many(4, () => track(limiter.acquire()));
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 4_000 });
  });

  it("gives a lower bound above 0 where an answer is waited for", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    const decision = limiter.check();
    expect(decision.proceed).toBe(false);
    expect(decision.waitMs).toBeGreaterThan(0);
    expect(decision.reason).toMatch(/concurrency|in flight/i);
    permit.release();
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
  });

  it.each([
    [{ minDelay: "1s" }, /1 ?s|1000/],
    [{ rate: "1/s" }, /1\/s/],
    [{ window: "1/min" }, /1\/min/],
    [{ quota: { count: 1, per: "day" } }, /day/],
  ] as const)("says why with the limit %j", async (limits, words) => {
    const { limiter } = keyRig(limits);
    await limiter.acquire();
    const { proceed, reason } = limiter.check();
    expect(proceed).toBe(false);
    expect(reason).toMatch(words);
  });

  it("has a wait of 0 exactly when it may proceed, and else whole milliseconds, rounded up", async () => {
    const { clock, limiter } = keyRig({ minDelay: 0.25 });
    await limiter.acquire();
    await clock.advance(0.2);
    expect(limiter.check().proceed).toBe(false);
    expect(limiter.check().waitMs).toBe(1);
    expect(limiter.explain().waitMs).toBeCloseTo(0.05, 3);
    await clock.advance(0.05);
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
  });
});
