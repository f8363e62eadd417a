import { describe, expect, it } from "vitest";
import { expectBooks, keyRig, only, rig, track } from "./support.js";

describe("record", () => {
  it("counts a start told late in the mean interval, also one before the first", async () => {
    const { clock, limiter } = keyRig({ minDelay: 0 });
    await clock.advance(10_000);
    (await limiter.acquire()).release();
    limiter.record("success", { startedAtMs: 4_000 });
    expect(limiter.stats()).toMatchObject({ totalRequests: 2, meanIntervalMs: 6_000 });
    limiter.record("success", { startedAtMs: 8_000 });
    expect(limiter.stats().meanIntervalMs).toBe(3_000);
    expect(limiter.elapsedMs()).toBe(0);
  });

  it("counts as a start in every limit", async () => {
    const { limiter } = keyRig({ minDelay: "1s", rate: "1/s", burst: 5, window: "3/min" });
    limiter.record("success");
    expect(limiter.stats()).toMatchObject({ totalRequests: 1, tokens: 4, window: { calls: 1 }, inFlight: 0 });
    expect(limiter.check().waitMs).toBe(1_000);
    expect(limiter.elapsedMs()).toBe(0);
    expectBooks(limiter.stats());
  });

  it("is counted even where no limit had room for it", async () => {
    const { clock, limiter } = keyRig({ window: "1/10s" });
    limiter.record("success");
    await clock.advance(4_000);
    limiter.record("success");
    expect(limiter.stats().totalRequests).toBe(2);
    expect(limiter.check().waitMs).toBe(10_000);
  });

  it("leaves a bucket owing more than it holds", () => {
    const { limiter } = keyRig({ rate: "1/s", burst: 2 });
    for (let index = 0; index < 5; index += 1) limiter.record("success");
    expect(limiter.check().waitMs).toBe(4_000);
  });

  it("places the request at the time it started", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s", window: "1/10s" });
    await clock.advance(5_000);
    limiter.record("success", { startedAtMs: 4_000 });
    expect(limiter.elapsedMs()).toBe(1_000);
    expect(limiter.check().waitMs).toBe(9_000);
  });

  it("counts a start later than now as now", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    await clock.advance(1_000);
    limiter.record("success", { startedAtMs: 999_999 });
    expect(limiter.check().waitMs).toBe(2_000);
  });

  it("keeps the latest start when an earlier one is recorded after it", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    await clock.advance(5_000);
    limiter.record("success", { startedAtMs: 5_000 });
    limiter.record("success", { startedAtMs: 3_500 });
    expect(limiter.check().waitMs).toBe(2_000);
    expect(limiter.elapsedMs()).toBe(0);
  });

  it("puts an answer into the incident it belongs to by when its request started", async () => {
    const { clock, limiter } = keyRig({ cooldown: ["10s", "20s"] });
    await clock.advance(1_000);
    limiter.record("rate_limited", { startedAtMs: 500 });
    await clock.advance(1_000);
    limiter.record("rate_limited", { startedAtMs: 600 });
    expect(limiter.stats().cooldownMs).toBe(10_000);
    await clock.advance(10_000);
    limiter.record("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(20_000);
  });

  it("pushes back those already waiting", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire());
    await clock.advance(600);
    limiter.record("success");
    await clock.advance(999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(1_600);
  });

  it("counts for the global limits and the intent too", async () => {
    const { limiter } = rig({
      default: { minDelay: 0 },
      hosts: { "a.org": { minDelay: 0, intents: { search: { minDelay: "5s" } } } },
      global: { minDelay: "1s" },
    });
    limiter.record({ host: "a.org", intent: "search" }, "success");
    expect(limiter.check({ host: "a.org", intent: "search" }).waitMs).toBe(5_000);
    expect(limiter.check("b.org").waitMs).toBe(1_000);
  });

  it("is told as a grant that was recorded, and its answer", () => {
    const { limiter, events } = rig();
    limiter.record("x.org", "rate_limited");
    expect(only(events, "grant")).toMatchObject([{ key: "x.org", recorded: true, waitedMs: 0 }]);
    expect(only(events, "cooldown")).toMatchObject([{ key: "x.org", untilMs: 60_000 }]);
  });

  it("takes a Response as the answer", () => {
    const { limiter } = rig();
    limiter.record("x.org", new Response(null, { status: 429, headers: { "retry-after": "12" } }));
    expect(limiter.stats("x.org")?.cooldownMs).toBe(12_000);
  });

  it("takes no concurrency place", () => {
    const { limiter } = keyRig({ concurrency: 1 });
    limiter.record("success");
    expect(limiter.tryAcquire()).toBeDefined();
  });
});
