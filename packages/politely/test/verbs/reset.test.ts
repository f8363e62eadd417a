import { describe, expect, it } from "vitest";
import { granted, keyRig, many, rig, startsOf, track } from "./support.js";

describe("reset", () => {
  it("by default forgets gap, rate and windows of one host and keeps its statistics", async () => {
    const { limiter } = rig({ default: { minDelay: "1s", rate: "1/s", burst: 2, window: "2/min" } });
    granted(limiter.tryAcquire("a.org"));
    granted(limiter.tryAcquire("b.org"));
    limiter.reset("https://A.org/");
    expect(limiter.check("a.org").proceed).toBe(true);
    expect(limiter.stats("a.org")).toMatchObject({ totalRequests: 1, tokens: 2, window: { calls: 0 } });
    expect(limiter.check("b.org").proceed).toBe(false);
  });

  it("without a target forgets the pace of every host, and the global one", async () => {
    const { limiter } = rig({ default: { minDelay: "1s" }, global: { window: "2/min" } });
    granted(limiter.tryAcquire("a.org"));
    granted(limiter.tryAcquire("b.org"));
    limiter.reset();
    expect(limiter.tryAcquire("a.org")).toBeDefined();
    expect(limiter.tryAcquire("b.org")).toBeDefined();
    expect(limiter.tryAcquire("c.org")).toBeUndefined();
  });

  it("keeps quotas, cooldowns and pauses, which only 'all' drops", () => {
    const { limiter } = rig({ default: { quota: { count: 1, per: "day" } } });
    granted(limiter.tryAcquire("spent.org")).release();
    limiter.record("held.org", "rate_limited");
    limiter.pause("paused.org", "1h");
    for (const what of ["pacing", "stats"] as const) {
      limiter.reset(undefined, what);
      for (const host of ["spent.org", "held.org", "paused.org"]) expect(limiter.check(host).proceed).toBe(false);
    }
    limiter.reset(undefined, "all");
    for (const host of ["spent.org", "held.org", "paused.org"])
      expect(limiter.check(host)).toEqual({ proceed: true, waitMs: 0 });
  });

  it("'all' drops the cooldown of one host alone, its step too", async () => {
    const { clock, limiter } = rig({ default: { cooldown: ["10s", "20s"] } });
    limiter.record("a.org", "rate_limited");
    limiter.record("b.org", "rate_limited");
    limiter.reset("a.org", "all");
    expect(limiter.check("a.org").proceed).toBe(true);
    expect(limiter.check("b.org").waitMs).toBe(10_000);
    await clock.advance(1);
    limiter.record("a.org", "rate_limited");
    expect(limiter.stats("a.org")?.cooldownMs).toBe(10_000);
  });

  it("'stats' forgets the numbers and nothing else", () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    granted(limiter.tryAcquire()).release("success");
    limiter.reset("stats");
    expect(limiter.stats()).toMatchObject({ totalRequests: 0, granted: 0, asked: 0, released: 0, totalWaitMs: 0 });
    expect(limiter.stats().lastRequestAt).toBeUndefined();
    expect(limiter.check().waitMs).toBe(1_000);
  });

  it("leaves permits in flight where they are", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    for (const what of ["pacing", "stats", "all"] as const) {
      limiter.reset(what);
      expect(limiter.tryAcquire()).toBeUndefined();
      expect(limiter.stats().inFlight).toBe(1);
    }
    permit.release();
    expect(limiter.stats().inFlight).toBe(0);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("keeps those waiting, and lets the first of them go at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: "10s" });
    await limiter.acquire();
    const waiting = many(2, () => limiter.acquire());
    await clock.advance(1_000);
    limiter.reset();
    await clock.advance(10_000);
    expect(await startsOf(waiting)).toEqual([1_000, 11_000]);
  });

  it("of a host never seen changes nothing", () => {
    const { limiter } = rig();
    limiter.reset("never-seen.org");
    limiter.reset("never-seen.org", "all");
    expect(limiter.stats("never-seen.org")).toBeUndefined();
  });

  it("keeps the books right for waiters that were counted before", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire());
    limiter.reset("stats");
    await clock.advance(1_000);
    expect(waiting.state).toBe("done");
    const stats = limiter.stats();
    expect(stats.asked).toBe(stats.granted + stats.refused + stats.cancelled + stats.expired + stats.waiting);
    expect(stats.granted).toBe(stats.released + stats.lapsed + stats.inFlight);
  });
});
