import { describe, expect, it } from "vitest";
import type { LimiterEvent } from "../../src/index.js";
import { failure, keyRig, many, only, rig, track } from "./support.js";

describe("subscribe", () => {
  it("tells the story of a request in order", async () => {
    const { clock, limiter, events } = rig({ default: { minDelay: "1s" } });
    (await limiter.acquire("a.org")).release("success");
    const second = limiter.acquire("a.org");
    await clock.advance(1_000);
    (await second).release();
    expect(events.map((event) => [event.type, event.key, event.atMs])).toEqual([
      ["grant", "a.org", 0],
      ["release", "a.org", 0],
      ["wait", "a.org", 0],
      ["grant", "a.org", 1_000],
      ["release", "a.org", 1_000],
    ]);
  });

  it("wait says how long, why and behind how many", () => {
    const { limiter, events } = keyRig({ minDelay: "1s" });
    void many(3, () => track(limiter.acquire()));
    expect(only(events, "wait")).toMatchObject([
      { waitMs: 1_000, ahead: 0 },
      { waitMs: 2_000, ahead: 1 },
    ]);
    expect(only(events, "wait").every((event) => event.reason.length > 0)).toBe(true);
  });

  it("grant says how long it waited, and marks what was recorded", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const second = limiter.acquire();
    await clock.advance(1_000);
    await second;
    limiter.record("success");
    const grants = only(events, "grant");
    expect(grants.map((event) => event.waitedMs)).toEqual([0, 1_000, 0]);
    expect(grants.map((event) => event.recorded)).toEqual([undefined, undefined, true]);
  });

  it("release says when the request had started and how it ended", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 5 });
    const permits = await Promise.all(many(3, () => limiter.acquire()));
    await clock.advance(700);
    permits[0].release("success");
    permits[1].release("timeout");
    permits[2].release("unused");
    const releases = only(events, "release");
    expect(releases.map((event) => event.outcome)).toEqual(["success", "timeout", "unused"]);
    expect(releases.every((event) => event.startedAtMs === 0 && event.atMs === 700)).toBe(true);
  });

  it("refuse says with which code, how long and why", async () => {
    const { limiter, events } = rig({
      default: { minDelay: "1s" },
      hosts: { "full.org": { minDelay: "1s", maxQueue: 0 } },
    });
    await Promise.all([limiter.acquire("a.org"), limiter.acquire("full.org")]);
    await failure(limiter.acquire("a.org", { maxWait: 1 }));
    await failure(limiter.acquire("full.org"));
    const refusals = only(events, "refuse");
    expect(refusals.map((event) => [event.key, event.code, event.waitMs])).toEqual([
      ["a.org", "POLITELY_DEADLINE", 1_000],
      ["full.org", "POLITELY_QUEUE_FULL", 1_000],
    ]);
    expect(refusals.every((event) => event.reason !== "")).toBe(true);
  });

  it("a refused tryAcquire is told or not, but never as a grant", async () => {
    const { limiter, events } = keyRig({ minDelay: "1s" });
    limiter.tryAcquire();
    limiter.tryAcquire();
    expect(only(events, "grant")).toHaveLength(1);
  });

  it("cooldown says until when, at which step and because of what", async () => {
    const { clock, limiter, events } = rig({ default: { cooldown: ["10s", "20s"] } });
    limiter.record("a.org", { status: 429, headers: { "retry-after": "7" } });
    await clock.advance(7_000);
    limiter.record("a.org", "rate_limited");
    const cooldowns = only(events, "cooldown");
    expect(cooldowns.map((event) => event.untilMs)).toEqual([7_000, 27_000]);
    expect(cooldowns[1].step - cooldowns[0].step).toBe(1);
    expect(cooldowns[0].because).toMatch(/429/);
  });

  it("probe says that the first after a cooldown goes alone", async () => {
    const { clock, limiter, events } = rig({ default: { minDelay: 1 } });
    limiter.record("a.org", "rate_limited");
    void many(2, () => track(limiter.acquire("a.org")));
    await clock.advance(60_000);
    expect(only(events, "probe")).toMatchObject([{ key: "a.org", atMs: 60_000 }]);
  });

  it("expire tells a waiter from a permit", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 1, maxHold: "10s" });
    await limiter.acquire();
    const late = failure(limiter.acquire({ maxWait: "1s" }));
    await clock.advance(10_000);
    await late;
    expect(limiter.stats().inFlight).toBe(0);
    expect(only(events, "expire")).toMatchObject([
      { what: "waiter", afterMs: 1_000, atMs: 1_000 },
      { what: "permit", afterMs: 10_000, atMs: 10_000 },
    ]);
  });

  it("evict says whose statistics were folded away", async () => {
    const { clock, limiter, events } = rig({ default: { minDelay: 1 } }, { keepStats: 1 });
    for (const host of ["a.org", "b.org", "c.org"]) {
      (await limiter.acquire(host)).release("success");
      await clock.advance(1_000);
    }
    limiter.stats();
    expect(only(events, "evict").map((event) => event.key)).toEqual(["a.org", "b.org"]);
  });

  it("reaches every listener until it is taken off", async () => {
    const { limiter } = rig();
    const first: LimiterEvent[] = [];
    const second: LimiterEvent[] = [];
    const stopFirst = limiter.subscribe((event) => first.push(event));
    const stopSecond = limiter.subscribe((event) => second.push(event));
    await limiter.acquire("a.org");
    stopFirst();
    stopFirst();
    await limiter.acquire("b.org");
    stopSecond();
    await limiter.acquire("c.org");
    expect(first.map((event) => event.key)).toEqual(["a.org"]);
    expect(second.map((event) => event.key)).toEqual(["a.org", "b.org"]);
  });

  it("takes off one subscription of a function that is subscribed twice", async () => {
    const { limiter } = rig();
    let calls = 0;
    const listener = (): void => {
      calls += 1;
    };
    const stop = limiter.subscribe(listener);
    limiter.subscribe(listener);
    stop();
    await limiter.acquire("a.org");
    expect(calls).toBe(1);
  });
});
