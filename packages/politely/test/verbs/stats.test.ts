import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../src/testing/index.js";
import { expectBooks, failure, granted, keyRig, many, rig, track } from "./support.js";

describe("stats", () => {
  it("is undefined for a host never seen, and zeros for one key before its first request", () => {
    expect(rig().limiter.stats("x.org")).toBeUndefined();
    expect(keyRig({ rate: "2/s", burst: 4, window: "9/min" }).limiter.stats()).toMatchObject({
      totalRequests: 0,
      delayedRequests: 0,
      cancelledRequests: 0,
      throttledRequests: 0,
      totalWaitMs: 0,
      averageWaitMs: 0,
      delayRate: 0,
      meanIntervalMs: 0,
      inFlight: 0,
      waiting: 0,
      cooldownMs: 0,
      tokens: 4,
      window: { calls: 0, remaining: 9, periodMs: 60_000, nextFreeMs: 0 },
      asked: 0,
      granted: 0,
    });
  });

  it("has no time of a last request before the first, and that of the wall clock after it", async () => {
    const wallMs = Date.UTC(2026, 5, 1, 8);
    const { clock, limiter } = keyRig({ minDelay: 1 }, { clock: new VirtualClock({ wallMs }) });
    expect(limiter.stats().lastRequestAt).toBeUndefined();
    await clock.advance(1_500);
    await limiter.acquire();
    await clock.advance(99);
    expect(limiter.stats().lastRequestAt).toEqual(new Date(wallMs + 1_500));
  });

  it("has tokens only with a rate and windows only with windows", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    expect(limiter.stats().tokens).toBeUndefined();
    expect(limiter.stats().window).toBeUndefined();
    expect(limiter.stats().windows).toEqual([]);
  });

  it("lists every window in the order of the policy", async () => {
    const { clock, limiter } = keyRig({ window: ["2/s", "5/min", "100/h"] });
    await Promise.all(many(2, () => limiter.acquire()));
    await clock.advance(400);
    const { window, windows } = limiter.stats();
    expect(windows).toEqual([
      { calls: 2, remaining: 0, periodMs: 1_000, nextFreeMs: 600, oldestLeavesMs: 600 },
      { calls: 2, remaining: 3, periodMs: 60_000, nextFreeMs: 0, oldestLeavesMs: 59_600 },
      { calls: 2, remaining: 98, periodMs: 3_600_000, nextFreeMs: 0, oldestLeavesMs: 3_599_600 },
    ]);
    expect(window).toEqual(windows[0]);
  });

  it("takes the mean interval from the first start to the last", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1 });
    for (const pause of [0, 100, 300, 200]) {
      await clock.advance(pause);
      await limiter.acquire();
    }
    await clock.advance(10_000);
    expect(limiter.stats().meanIntervalMs).toBe(200);
  });

  it("counts answers that said too many requests", async () => {
    const { limiter } = keyRig({ concurrency: 5 });
    const permits = await Promise.all(many(4, () => limiter.acquire()));
    permits[0].release("rate_limited");
    permits[1].release({ status: 429 });
    permits[2].release("server_error");
    permits[3].release("success");
    expect(limiter.stats().throttledRequests).toBe(2);
  });

  it("balances the books through every way a request can end", async () => {
    const { clock, limiter } = rig({
      hosts: { "x.org": { minDelay: "1s", concurrency: 2, maxHold: "30s", maxQueue: 4 } },
    });
    const books = (): void => expectBooks(limiter.stats("x.org"));
    const first = await limiter.acquire("x.org");
    books();
    const abort = new AbortController();
    const waiting = [
      track(limiter.acquire("x.org", { signal: abort.signal })),
      track(limiter.acquire("x.org")),
      track(limiter.acquire("x.org", { maxWait: "5s" })),
      track(limiter.acquire("x.org")),
    ];
    books();
    await failure(limiter.acquire("x.org"));
    books();
    expect(limiter.tryAcquire("x.org")).toBeUndefined();
    books();
    abort.abort();
    books();
    await clock.advance(1_000);
    books();
    expect(waiting[1].state).toBe("done");
    await clock.advance(5_000);
    expect(waiting[2].state).toBe("failed");
    books();
    first.release("success");
    await clock.advance(0);
    expect(waiting[3].state).toBe("done");
    books();
    await clock.advance(60_000);
    books();
    limiter.record("x.org", "success");
    books();
    expect(limiter.stats("x.org")).toMatchObject({
      granted: 4,
      lapsed: 2,
      released: 2,
      cancelled: 1,
      expired: 1,
      inFlight: 0,
    });
  });

  it("shows a host that only waits or was only refused", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { minDelay: "10s" } });
    await limiter.acquire("a.org");
    const waiting = track(limiter.acquire("b.org"));
    expect(limiter.stats("b.org")).toMatchObject({ waiting: 1, totalRequests: 0, asked: 1 });
    await clock.advance(10_000);
    expect(waiting.state).toBe("done");
  });

  it("carries the rest beside the keys of source 4 as JSON", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    granted(limiter.tryAcquire());
    const json = limiter.stats().toJSON();
    for (const key of [
      "domain",
      "total_requests",
      "delayed_requests",
      "total_wait_time_ms",
      "average_wait_time_ms",
      "last_request_time",
      "delay_rate",
    ]) {
      expect(json).toHaveProperty(key);
    }
    expect(Object.keys(json).length).toBeGreaterThan(7);
  });

  it("of all hosts is a list of copies", async () => {
    const { limiter } = rig();
    await limiter.acquire("a.org");
    const [before] = limiter.stats();
    await limiter.acquire("b.org");
    limiter.record("a.org", "success");
    expect(before.totalRequests).toBe(1);
    expect(limiter.stats()).toHaveLength(2);
  });
});

describe("elapsedMs", () => {
  it("is infinite for a host never asked, also after a check", () => {
    const { limiter } = rig();
    limiter.check("x.org");
    expect(limiter.elapsedMs("x.org")).toBe(Number.POSITIVE_INFINITY);
  });

  it("runs from the start of a request, not from its arrival or its release", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    await limiter.acquire("x.org");
    const second = limiter.acquire("x.org");
    await clock.advance(1_400);
    (await second).release("success");
    expect(limiter.elapsedMs("https://X.org/")).toBe(400);
    expect(limiter.elapsedMs("y.org")).toBe(Number.POSITIVE_INFINITY);
  });
});
