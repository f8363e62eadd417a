import { describe, expect, it } from "vitest";
import { limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { gapsOf, keyRig, many, memoryLogger, rig, startsOf, track } from "../verbs/support.js";

describe("source 1, the interval limiter", () => {
  it("S1.1 the first request never waits and the second waits one whole gap", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    const permits = [limiter.acquire(), limiter.acquire()];
    await clock.advance(2_000);
    expect(await startsOf(permits)).toEqual([0, 2_000]);
    expect((await permits[0]).waitedMs).toBe(0);
    expect((await permits[1]).waitedMs).toBe(2_000);
  });

  it("S1.1 time already passed counts, so only the rest is waited", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    await limiter.acquire();
    await clock.advance(500);
    const second = limiter.acquire();
    await clock.advance(1_500);
    expect((await second).startedAtMs).toBe(2_000);
    expect((await second).waitedMs).toBe(1_500);
    await clock.advance(3_000);
    expect((await limiter.acquire()).waitedMs).toBe(0);
  });

  it("S1.1 the first request is remembered, so that a loop of requests is paced from the second on", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1_000 });
    const starts: number[] = [];
    const loop = (async () => {
      for (let index = 0; index < 5; index += 1) starts.push((await limiter.acquire()).startedAtMs);
    })();
    await clock.advance(4_000);
    await loop;
    expect(starts).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
  });

  it("S1.2 the elapsed time is infinite before the first request and grows after it", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    expect(limiter.elapsedMs()).toBe(Number.POSITIVE_INFINITY);
    await limiter.acquire();
    expect(limiter.elapsedMs()).toBe(0);
    await clock.advance(700);
    expect(limiter.elapsedMs()).toBe(700);
    await clock.advance(9_300);
    expect(limiter.elapsedMs()).toBe(10_000);
  });

  it("S1.2 the remaining time falls to 0 and stays there", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    expect(limiter.check()).toMatchObject({ proceed: true, waitMs: 0 });
    await limiter.acquire();
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 2_000 });
    await clock.advance(700);
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 1_300 });
    await clock.advance(1_300);
    expect(limiter.check()).toMatchObject({ proceed: true, waitMs: 0 });
    await clock.advance(60_000);
    expect(limiter.check()).toMatchObject({ proceed: true, waitMs: 0 });
  });

  it.each([
    ["enabled: false", { enabled: false, minDelay: "2s" }],
    ["a gap of 0", { minDelay: 0 }],
    ["a gap of 0 s, written out", { minDelay: "0s" }],
  ] as const)("S1.3 %s turns limiting off", async (_name, limits) => {
    const { limiter } = keyRig(limits);
    const permits = await Promise.all(many(100, () => limiter.acquire()));
    expect(permits.every((permit) => permit.waitedMs === 0)).toBe(true);
    expect(limiter.check()).toMatchObject({ proceed: true, waitMs: 0 });
  });

  it.each(["localhost", "http://localhost:3000/page", "http://127.0.0.1:8080/", "http://[::1]:8080/"])(
    "S1.3 %s is never limited while the policy does not name it",
    async (target) => {
      const { limiter } = rig({ default: { minDelay: "2s" }, global: { minDelay: "1s" } });
      const permits = await Promise.all(many(20, () => limiter.acquire(target)));
      expect(permits.every((permit) => permit.waitedMs === 0)).toBe(true);
      expect(limiter.tryAcquire("example.com")).toBeDefined();
    },
  );

  it("S1.3 a localhost that the policy names is limited like any other host", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "2s" }, hosts: { localhost: { minDelay: "1s" } } });
    const permits = many(3, () => limiter.acquire("http://localhost:3000/"));
    await clock.advance(2_000);
    expect(await startsOf(permits)).toEqual([0, 1_000, 2_000]);
  });

  it("S1.3 localhost: 'limited' gives this machine the default limits", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "2s" }, localhost: "limited" });
    const permits = many(2, () => limiter.acquire("http://127.0.0.1/"));
    await clock.advance(2_000);
    expect(await startsOf(permits)).toEqual([0, 2_000]);
  });

  it("S1.4 after a reset the next request is a first one", async () => {
    const { clock, limiter } = keyRig({ minDelay: "60s" });
    await limiter.acquire();
    await clock.advance(10);
    limiter.reset();
    expect(limiter.elapsedMs()).toBe(Number.POSITIVE_INFINITY);
    expect(limiter.check().waitMs).toBe(0);
    expect((await limiter.acquire()).waitedMs).toBe(0);
    expect(limiter.check().waitMs).toBe(60_000);
  });

  it.each([-3_600_000, 3_600_000, -31_536_000_000])(
    "S1.5 a system time shifted by %i ms changes nothing",
    async (shift) => {
      const { clock, limiter } = keyRig({ minDelay: "2s" });
      await limiter.acquire();
      const waiting = limiter.acquire();
      await clock.advance(500);
      clock.shiftWall(shift);
      expect(limiter.elapsedMs()).toBe(500);
      await clock.advance(1_500);
      expect((await waiting).startedAtMs).toBe(2_000);
      expect(limiter.check().waitMs).toBe(2_000);
    },
  );

  it("S1.5 a remainder below zero never sleeps", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    await limiter.acquire();
    await clock.advance(5_000);
    expect(limiter.check().waitMs).toBe(0);
    expect((await limiter.acquire()).startedAtMs).toBe(5_000);
  });

  it.each([10, 50, 100, 250, 1_000, 2_000, 60_000])(
    "S1.6 a gap of %i ms is kept exactly, 50 times in a row",
    async (gap) => {
      const { clock, limiter } = keyRig({ minDelay: gap });
      const permits = many(50, () => limiter.acquire());
      await clock.advance(gap * 50);
      expect(new Set(gapsOf(await startsOf(permits)))).toEqual(new Set([gap]));
    },
  );

  it.each([10, 50, 1_000, 60_000])(
    "S1.6 a gap of %i ms is never short and hardly long when timers fire early",
    async (gap) => {
      const clock = new VirtualClock({ timersFireEarlyMs: 0.8 });
      const limiter = limit({ minDelay: gap }, { clock });
      const permits = many(20, () => limiter.acquire());
      await clock.advance(gap * 20 + 100);
      for (const measured of gapsOf(await startsOf(permits))) {
        expect(measured).toBeGreaterThanOrEqual(gap);
        expect(measured).toBeLessThanOrEqual(gap + 1);
      }
    },
  );

  it("S1.7 a wait is logged at debug when it begins, with its seconds, and when it is over", async () => {
    const logger = memoryLogger();
    const { clock, limiter } = keyRig({ minDelay: "1.5s" }, { logger });
    await limiter.acquire();
    expect(logger.lines.debug.filter((line) => line.includes("waiting"))).toEqual([]);
    const waiting = limiter.acquire();
    const before = logger.lines.debug.filter((line) => line.includes("waiting"));
    expect(before).toHaveLength(1);
    expect(before[0]).toMatch(/waiting 1\.50? ?s/);
    await clock.advance(1_500);
    await waiting;
    expect(logger.lines.debug.filter((line) => line.includes("done waiting"))).toHaveLength(1);
  });

  it("S1.7 the configuration is logged at info when the limiter is made", () => {
    const logger = memoryLogger();
    politely({ default: { minDelay: "2s" } }, { clock: new VirtualClock(), logger });
    expect(logger.lines.info.length).toBeGreaterThan(0);
    expect(logger.lines.info.join("\n")).toMatch(/2 ?s|2000 ?ms/);
  });

  it("S1.7 a localhost that is not limited is logged at info, once", async () => {
    const logger = memoryLogger();
    const { limiter } = rig({ default: { minDelay: "2s" } }, { logger });
    await limiter.acquire("http://localhost:3000/a");
    await limiter.acquire("http://localhost:3000/b");
    expect(logger.lines.info.filter((line) => line.includes("disabled (localhost)"))).toHaveLength(1);
  });

  it("S1.8 the wait shown before a request is the wait it then has", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    const shown: number[] = [];
    const waited: number[] = [];
    const loop = (async () => {
      for (const pause of [0, 0, 700, 2_500, 100]) {
        const arrival = clock.now() + pause;
        if (pause > 0) await new Promise<void>((resolve) => void clock.setTimer(arrival, resolve));
        shown.push(limiter.check().waitMs);
        waited.push((await limiter.acquire()).waitedMs);
      }
    })();
    await clock.advance(20_000);
    await loop;
    expect(shown).toEqual(waited);
    expect(shown).toEqual([0, 2_000, 1_300, 0, 1_900]);
  });

  it("S1.9 a list of pages is fetched at its pace, saved, and its progress told", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const saved = new Map<string, string>();
    const progress: string[] = [];
    const urls = many(4, (index) => `https://example.com/page${index + 1}`);
    const all = Promise.all(
      urls.map((url) =>
        limiter.run(url, (permit) => {
          saved.set(url, `body at ${permit.startedAtMs}`);
          progress.push(`${saved.size}/${urls.length}`);
        }),
      ),
    );
    await clock.advance(3_000);
    await all;
    expect(progress).toEqual(["1/4", "2/4", "3/4", "4/4"]);
    expect([...saved.values()]).toEqual(["body at 0", "body at 1000", "body at 2000", "body at 3000"]);
  });

  it("S1.10 callers at the same moment are paced one by one", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const permits = many(200, () => limiter.acquire());
    await clock.advance(20_000);
    const starts = await startsOf(permits);
    expect(new Set(gapsOf(starts))).toEqual(new Set([100]));
    expect(starts[0]).toBe(0);
  });

  it("S1.10 a burst goes at once and is paid for afterwards", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 3 });
    const permits = many(5, () => limiter.acquire());
    await clock.advance(2_000);
    expect(await startsOf(permits)).toEqual([0, 0, 0, 1_000, 2_000]);
  });

  it("S1.10 errors make the wait grow exponentially", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100, backoff: "exponential" });
    const holds: number[] = [];
    for (let index = 0; index < 3; index += 1) {
      const permit = track(limiter.acquire());
      await clock.advance(0);
      permit.value?.release("server_error");
      holds.push(limiter.stats().cooldownMs);
      await clock.advance(holds[index]);
    }
    expect(holds).toEqual([5_000, 10_000, 20_000]);
  });

  it("S1.10 the mean interval and the total wait are counted", async () => {
    const { clock, limiter } = keyRig({ minDelay: "2s" });
    const permits = many(4, () => limiter.acquire());
    await clock.advance(6_000);
    await startsOf(permits);
    expect(limiter.stats()).toMatchObject({
      totalRequests: 4,
      meanIntervalMs: 2_000,
      totalWaitMs: 2_000 + 4_000 + 6_000,
    });
  });
});
