import { describe, expect, it } from "vitest";
import { DeadlineError } from "../../src/index.js";
import { keyRig, many, only, rig, startsOf, track } from "./support.js";

describe("pause and resume", () => {
  it("holds one host for a while and leaves the others alone", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } });
    limiter.pause("https://a.org/", "5s");
    expect(limiter.check("a.org")).toMatchObject({ proceed: false, waitMs: 5_000 });
    expect(limiter.check("a.org").reason).toMatch(/paus/i);
    expect(limiter.check("b.org").proceed).toBe(true);
    const waiting = limiter.acquire("a.org");
    await clock.advance(5_000);
    expect((await waiting).startedAtMs).toBe(5_000);
  });

  it("holds until resume where no duration is given", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } });
    limiter.pause("a.org");
    const waiting = track(limiter.acquire("a.org"));
    expect(limiter.check("a.org").proceed).toBe(false);
    expect(limiter.check("a.org").waitMs).toBeGreaterThan(0);
    await clock.advance(1_000_000);
    expect(waiting.state).toBe("pending");
    limiter.resume("a.org");
    await clock.settle();
    expect(waiting.value?.startedAtMs).toBe(1_000_000);
  });

  it("without a target holds every host, those not seen yet too", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } });
    await limiter.acquire("a.org");
    limiter.pause();
    const waiting = ["a.org", "b.org", "c.org"].map((host) => track(limiter.acquire(host)));
    await clock.advance(60_000);
    expect(waiting.map((waiter) => waiter.state)).toEqual(["pending", "pending", "pending"]);
    limiter.resume();
    await clock.settle();
    expect(waiting.map((waiter) => waiter.state)).toEqual(["done", "done", "done"]);
  });

  it("of everything can have a duration", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } });
    limiter.pause(undefined, 2_000);
    const waiting = limiter.acquire("a.org");
    expect(limiter.check("b.org").waitMs).toBe(2_000);
    await clock.advance(2_000);
    expect((await waiting).startedAtMs).toBe(2_000);
  });

  it("a resume without a target ends every pause", async () => {
    const { limiter } = rig({ default: { minDelay: 1 } });
    limiter.pause("a.org");
    limiter.pause("b.org", "1h");
    limiter.resume();
    expect(limiter.check("a.org").proceed).toBe(true);
    expect(limiter.check("b.org").proceed).toBe(true);
  });

  it("a second pause replaces the first, a shorter one too", () => {
    const { limiter } = keyRig({ minDelay: 1 });
    limiter.pause("10s");
    limiter.pause("3s");
    expect(limiter.check().waitMs).toBe(3_000);
    limiter.pause("20s");
    expect(limiter.check().waitMs).toBe(20_000);
  });

  it("a resume ends no cooldown", () => {
    const { limiter } = keyRig({ minDelay: 1 });
    limiter.record("rate_limited");
    limiter.pause("120s");
    expect(limiter.check().waitMs).toBe(120_000);
    limiter.resume();
    expect(limiter.check().waitMs).toBe(60_000);
  });

  it("a resume gives no credit: the pace goes on as before", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    limiter.pause();
    const waiting = many(3, () => limiter.acquire());
    await clock.advance(60_000);
    limiter.resume();
    await clock.advance(5_000);
    expect(await startsOf(waiting)).toEqual([60_000, 61_000, 62_000]);
  });

  it("what is in flight goes on", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    limiter.pause();
    permit.release("success");
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it("a resume of a host that was not paused changes nothing", () => {
    const { limiter } = rig();
    limiter.resume("x.org");
    limiter.resume();
    expect(limiter.check("x.org")).toEqual({ proceed: true, waitMs: 0 });
  });

  it("a waiter whose deadline falls into the pause does not start", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire({ maxWait: "2s" }));
    limiter.pause("10s");
    await clock.advance(2_000);
    expect(waiting.error).toBeInstanceOf(DeadlineError);
    expect(limiter.stats().totalRequests).toBe(1);
  });

  it("tells both as events", async () => {
    const { clock, limiter, events } = rig();
    await clock.advance(100);
    limiter.pause("a.org", "5s");
    limiter.resume("a.org");
    expect(only(events, "pause")).toMatchObject([{ key: "a.org", atMs: 100, untilMs: 5_100 }]);
    expect(only(events, "resume")).toMatchObject([{ key: "a.org", atMs: 100 }]);
  });
});
