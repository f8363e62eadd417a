import { describe, expect, it } from "vitest";
import { exact, failure, gapsOf, keyRig, many, mostWithin, startsOf } from "../verbs/support.js";

describe("windows", () => {
  it("one call, then a burst at 0.9 of the window: the second window still counts the burst (9 of 13 Node limiters let 19 of 10 through)", async () => {
    const { clock, limiter } = keyRig({ window: "10/s" });
    const permits = [limiter.acquire()];
    await clock.advance(900);
    permits.push(...many(40, () => limiter.acquire()));
    await clock.advance(10_000);
    const starts = await startsOf(permits);
    expect(starts.filter((start) => start === 900)).toHaveLength(9);
    expect(starts[10]).toBe(1_000);
    expect(starts[11]).toBe(1_900);
    expect(mostWithin(starts, 1_000)).toBe(10);
  });

  it("a slow trickle, then a flood: the trickle is counted", async () => {
    const { clock, limiter } = keyRig({ window: "10/s" });
    const permits = [];
    for (let index = 0; index < 20; index += 1) {
      permits.push(limiter.acquire());
      await clock.advance(150);
    }
    permits.push(...many(60, () => limiter.acquire()));
    await clock.advance(20_000);
    const starts = await startsOf(permits);
    expect(mostWithin(starts, 1_000)).toBe(10);
    expect(starts.slice(0, 20)).toEqual(many(20, (index) => index * 150));
    // At 3,000 ms the trickle of 2,100 to 2,850 (six calls) is still inside, so four go at once.
    expect(starts.filter((start) => start === 3_000)).toHaveLength(4);
  });

  it("a window of one per period is a gap of one period", async () => {
    const { clock, limiter } = keyRig({ window: "1/250ms" });
    const permits = many(20, () => limiter.acquire());
    await clock.advance(5_000);
    expect(new Set(gapsOf(await startsOf(permits)))).toEqual(new Set([250]));
  });

  it("several windows hold at the same time", async () => {
    const { clock, limiter } = keyRig({ window: ["3/s", "5/10s"] });
    const permits = many(12, () => limiter.acquire());
    await clock.advance(30_000);
    const starts = await startsOf(permits);
    expect(starts).toEqual([0, 0, 0, 1_000, 1_000, 10_000, 10_000, 10_000, 11_000, 11_000, 20_000, 20_000]);
    expect(mostWithin(starts, 1_000)).toBe(3);
    expect(mostWithin(starts, 10_000)).toBe(5);
  });

  it.each([
    ["a window", { window: "5/s" }, 5],
    ["a window of one", { window: "1/s" }, 1],
    ["a bucket", { rate: "1/s", burst: 3 }, 3],
    ["a bucket without a burst of its own", { rate: "100/s" }, 1],
    ["a quota", { quota: { count: 4, per: "day" } }, 4],
  ] as const)(
    "a weight above the capacity of %s fails at once instead of waiting for ever (upstash 39)",
    async (_name, limits, most) => {
      const { clock, limiter } = keyRig(limits);
      const error = await failure(limiter.acquire({ cost: most + 1 }));
      expect(error).toBeInstanceOf(RangeError);
      expect(String(error)).toContain(String(most + 1));
      expect(() => limiter.tryAcquire({ cost: most + 1 })).toThrow(RangeError);
      expect(clock.pendingTimers).toBe(0);
      expect((await limiter.acquire({ cost: most })).waitedMs).toBe(0);
    },
  );

  it("refused calls do not extend the block (rolling-rate-limiter 36)", async () => {
    const { clock, limiter } = keyRig({ window: "3/s" });
    await startsOf(many(3, () => limiter.acquire()));
    for (let at = 0; at < 1_000; at += 10) {
      expect(limiter.tryAcquire()).toBeUndefined();
      await failure(limiter.acquire({ maxWait: 0 }));
      await clock.advance(10);
    }
    expect(clock.now()).toBe(1_000);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it.each([
    ["a window", { window: "20/s" }],
    ["a gap", { minDelay: 50 }],
    ["a bucket", { rate: "20/s", burst: 5 }],
  ] as const)("%s reaches its full rate again after idling and after a burst (p-queue 251)", async (_name, limits) => {
    const { clock, limiter } = keyRig(limits);
    for (const idleMs of [0, 700, 60_000, 1_234_567]) {
      await clock.advance(idleMs);
      const from = clock.now();
      const permits = many(201, () => limiter.acquire());
      await clock.advance(10_100);
      const starts = (await startsOf(permits)).map((start) => exact(start - from));
      // 200 after the first take 10 s at 20 per second; a burst saved up may only make it shorter.
      expect(Math.max(...starts)).toBeLessThanOrEqual(10_050);
      expect(Math.max(...starts)).toBeGreaterThanOrEqual(9_000);
    }
  });

  it("a window keeps its full rate over ten thousand starts", async () => {
    const { clock, limiter } = keyRig({ window: "10/s" });
    const permits = many(10_000, () => limiter.acquire());
    await clock.advance(999_000);
    const starts = await startsOf(permits);
    expect(starts[9_999]).toBe(999_000);
    expect(starts.every((start, index) => start === Math.floor(index / 10) * 1_000)).toBe(true);
  });

  it.each([3, 7, 9, 13, 30, 49, 97])(
    "a bucket of %i per second grants the last unit of its first burst, and every later one in full",
    async (count) => {
      const { clock, limiter } = keyRig({ rate: `${count}/s`, burst: count });
      for (let second = 0; second < 20; second += 1) {
        for (let unit = 0; unit < count; unit += 1) expect(limiter.tryAcquire()).toBeDefined();
        expect(limiter.tryAcquire()).toBeUndefined();
        await clock.advance(1_000);
      }
    },
  );

  it("a bucket of 7 per second with a burst loses nothing to rounding over 7,000 starts", async () => {
    const { clock, limiter } = keyRig({ rate: "7/s", burst: 2 });
    const permits = many(7_002, () => limiter.acquire());
    await clock.advance(1_000_001);
    const starts = await startsOf(permits);
    const late = starts.map((start, index) => start - (Math.max(0, index - 1) * 1_000) / 7);
    expect(Math.min(...late)).toBeGreaterThan(-0.000_5);
    expect(Math.max(...late)).toBeLessThan(0.002);
  });

  it("a bucket of 7 per second without a burst keeps a gap of a seventh of a second, rounded up to a microsecond", async () => {
    const { clock, limiter } = keyRig({ rate: "7/s", burst: 1 });
    const permits = many(7_001, () => limiter.acquire());
    await clock.advance(7_000 * 142.858 + 1);
    expect(new Set(gapsOf(await startsOf(permits)))).toEqual(new Set([142.858]));
  });

  it("a window of more than 4,096 is never over and late by at most a 1,024th of its period", async () => {
    const { clock, limiter } = keyRig({ window: "5000/10s" });
    const permits = many(10_001, () => limiter.acquire());
    await clock.advance(20_100);
    const starts = await startsOf(permits);
    expect(starts[4_999]).toBe(0);
    for (const [index, due] of [
      [5_000, 10_000],
      [9_999, 10_000],
      [10_000, 20_000],
    ] as const) {
      expect(starts[index]).toBeGreaterThanOrEqual(due);
      expect(starts[index]).toBeLessThanOrEqual(due + (2 * 10_000) / 1_024);
    }
    expect(starts[5_000] - starts[4_999]).toBeGreaterThanOrEqual(10_000);
    expect(starts[10_000] - starts[5_000]).toBeGreaterThanOrEqual(10_000);
  });
});
