import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/index.js";
import { limit } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { gapsOf, keyRig, many, mostWithin, rig, startsOf, track } from "../verbs/support.js";

const day = 86_400_000;

describe("time", () => {
  it.each([50, 250, 5_000])("gaps do not collapse after a stall of %i ms (bottleneck, p-throttle)", async (stallMs) => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const permits = many(30, () => limiter.acquire());
    await clock.advance(450);
    clock.stall(stallMs);
    await clock.advance(20_000);
    const starts = await startsOf(permits);
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(100);
    expect(starts[29]).toBeLessThanOrEqual(2_900 + stallMs);
  });

  it.each([50, 5_000])("a window holds through a stall of %i ms", async (stallMs) => {
    const { clock, limiter } = keyRig({ window: "5/s" });
    const permits = many(40, () => limiter.acquire());
    await clock.advance(980);
    clock.stall(stallMs);
    await clock.advance(20_000);
    expect(mostWithin(await startsOf(permits), 1_000)).toBe(5);
  });

  it("a stall after which many hosts are due starts each of them once", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 100 } });
    const permits = many(50, (index) => many(3, () => limiter.acquire(`h${index}.org`)));
    clock.stall(5_000);
    await clock.advance(1_000);
    for (const host of permits) expect(await startsOf(host)).toEqual([0, 5_000, 5_100]);
  });

  it("a system clock set back one hour does not hang the next call (bottleneck, p-throttle)", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1_000, window: "10/min", rate: "2/s", burst: 3 });
    await limiter.acquire();
    clock.shiftWall(-3_600_000);
    const waiting = limiter.acquire();
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("a clock that steps back by some milliseconds counts as standing still: nothing starts early and nothing hangs", async () => {
    const inner = new VirtualClock();
    let offsetMs = 0;
    const clock: Clock = {
      now: () => inner.now() + offsetMs,
      wall: () => inner.wall(),
      setTimer: (atMs, fn) => inner.setTimer(atMs - offsetMs, fn),
      clearTimer: (timer) => inner.clearTimer(timer),
    };
    const limiter = limit({ minDelay: 100, rate: "10/s", burst: 2 }, { clock });
    await limiter.acquire();
    const waiting = track(limiter.acquire());
    await inner.advance(60);
    expect(limiter.check().proceed).toBe(false);
    offsetMs = -20;
    expect(limiter.check().waitMs).toBeGreaterThanOrEqual(40);
    await inner.advance(59);
    expect(waiting.state).toBe("pending");
    await inner.advance(41);
    expect(waiting.value?.startedAtMs).toBeGreaterThanOrEqual(100);
    expect(limiter.elapsedMs()).toBeGreaterThanOrEqual(0);
  });

  it.each([
    ["a gap", { minDelay: "30d" }],
    ["a window", { window: "1/30d" }],
    ["a bucket", { rate: "1/30d" }],
  ] as const)(
    "a wait of 30 days through %s, more than 2^31 ms, does not fire at once (rate-limiter-flexible 71, axios-retry)",
    async (_name, limits) => {
      const { clock, limiter } = keyRig(limits);
      await limiter.acquire();
      const waiting = track(limiter.acquire());
      await clock.advance(30 * day - 1);
      expect(waiting.state).toBe("pending");
      await clock.advance(1);
      expect(waiting.value?.startedAtMs).toBe(30 * day);
    },
  );

  it("a Retry-After of 60 days is waited for in full (rate-limiter-flexible 71, axios-retry)", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    (await limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 60 * day });
    const waiting = track(limiter.acquire());
    await clock.advance(60 * day - 1);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(60 * day);
  });

  it("a call dated in the past mints no tokens (Go x/time/rate in Cadence 6030)", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 3 });
    await clock.advance(10_000);
    for (let unit = 0; unit < 3; unit += 1) expect(limiter.tryAcquire()).toBeDefined();
    limiter.record("success", { startedAtMs: 1_000 });
    limiter.record("success", { startedAtMs: 5_000 });
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(999);
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("reading the clock afresh for every decision never gives more than burst plus rate times time (Go x/time/rate in Cadence 6030)", async () => {
    const { clock, limiter } = keyRig({ rate: "50/s", burst: 5 });
    let granted = 0;
    for (let step = 0; step < 5_000; step += 1) {
      clock.stall(step % 7);
      if (limiter.tryAcquire() !== undefined) granted += 1;
      expect(granted).toBeLessThanOrEqual(5 + (50 * clock.now()) / 1_000);
    }
    expect(granted).toBeGreaterThanOrEqual(Math.floor((50 * clock.now()) / 1_000));
  });

  it.each([
    ["a gap", { minDelay: 100 }, 1],
    ["a bucket of one", { rate: "10/s", burst: 1 }, 1],
    ["a bucket of five", { rate: "10/s", burst: 5 }, 5],
    ["a window", { window: "10/s" }, 10],
  ] as const)(
    "an hour of idling saves up no more than %s allows at once (uber 106, 119)",
    async (_name, limits, atOnce) => {
      const { clock, limiter } = keyRig(limits);
      await limiter.acquire();
      await clock.advance(3_600_000);
      const permits = many(atOnce + 1, () => limiter.acquire());
      await clock.advance(2_000);
      const starts = await startsOf(permits);
      expect(starts.filter((start) => start === 3_600_000)).toHaveLength(atOnce);
      expect(starts[atOnce]).toBeGreaterThanOrEqual(3_600_100);
    },
  );

  it.each([0, 0.25, 0.5, 0.999])("jitter never goes under the floor, with the random number %d (Scrapy)", (random) => {
    const backoff = { kind: "exponential", base: "5s", max: "60s", jitter: 0.5 } as const;
    const { limiter } = keyRig({ minDelay: 10, backoff }, { random: () => random });
    limiter.record("server_error");
    const held = limiter.stats().cooldownMs;
    expect(held).toBeGreaterThanOrEqual(5_000);
    expect(held).toBeLessThanOrEqual(7_500);
    expect(held > 5_000).toBe(random > 0);
  });

  it("timers that fire up to a millisecond early start nothing early", async () => {
    const clock = new VirtualClock({ timersFireEarlyMs: 1 });
    const limiter = limit({ minDelay: 20, window: "30/s" }, { clock });
    const permits = many(100, () => limiter.acquire());
    await clock.advance(10_000);
    const starts = await startsOf(permits);
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(20);
    expect(mostWithin(starts, 1_000)).toBeLessThanOrEqual(30);
  });

  it("gaps of fractions of a millisecond are kept too", async () => {
    const { clock, limiter } = keyRig({ minDelay: 0.5 });
    const permits = many(100, () => limiter.acquire());
    await clock.advance(50);
    expect(new Set(gapsOf(await startsOf(permits)))).toEqual(new Set([0.5]));
  });
});
