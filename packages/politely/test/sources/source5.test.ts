import { describe, expect, it } from "vitest";
import { keyRig, many, mostWithin, rig, startsOf, track } from "../verbs/support.js";

const sixtyPerMinute = { window: "60/60s" } as const;

describe("source 5, the sliding window", () => {
  it("S5.1 sixty go at once and the next waits until the oldest leaves the window", async () => {
    const { clock, limiter } = keyRig(sixtyPerMinute);
    const permits = many(62, () => limiter.acquire());
    await clock.advance(59_999);
    expect(limiter.stats().waiting).toBe(2);
    await clock.advance(1);
    const starts = await startsOf(permits);
    expect(starts.slice(0, 60).every((start) => start === 0)).toBe(true);
    expect(starts.slice(60)).toEqual([60_000, 60_000]);
  });

  it("S5.1 calls spread over the window free their places one by one", async () => {
    const { clock, limiter } = keyRig({ window: "3/60s" });
    for (let index = 0; index < 3; index += 1) {
      await limiter.acquire();
      await clock.advance(10_000);
    }
    const later = many(3, () => limiter.acquire());
    await clock.advance(60_000);
    expect(await startsOf(later)).toEqual([60_000, 70_000, 80_000]);
  });

  it("S5.1 a call that had to wait is recorded at its start, not at its arrival", async () => {
    const { clock, limiter } = keyRig({ window: "1/60s" });
    const permits = many(3, () => limiter.acquire());
    await clock.advance(120_000);
    expect(await startsOf(permits)).toEqual([0, 60_000, 120_000]);
  });

  it("S5.1 a waiter looks again after its wait: a call recorded meanwhile keeps it waiting", async () => {
    const { clock, limiter } = keyRig({ window: "1/60s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire());
    await clock.advance(30_000);
    limiter.record("success");
    await clock.advance(30_000);
    expect(waiting.state).toBe("pending");
    await clock.advance(30_000);
    expect(waiting.value?.startedAtMs).toBe(90_000);
  });

  it("S5.1 nobody else is held up while one waits", async () => {
    const { clock, limiter } = rig({ default: { window: "1/60s" } });
    await limiter.acquire("a.org");
    const waiting = limiter.acquire("a.org");
    expect(limiter.stats("a.org")).toMatchObject({ waiting: 1 });
    expect(limiter.check("a.org").proceed).toBe(false);
    expect((await limiter.acquire("b.org")).waitedMs).toBe(0);
    await clock.advance(60_000);
    expect((await waiting).startedAtMs).toBe(60_000);
  });

  it("S5.2 the statistics tell the calls in the period, those remaining, the period and the next free slot", async () => {
    const { clock, limiter } = keyRig({ window: "3/60s" });
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 3, periodMs: 60_000, nextFreeMs: 0 });
    await limiter.acquire();
    await clock.advance(10_000);
    await limiter.acquire();
    expect(limiter.stats().window).toMatchObject({ calls: 2, remaining: 1, periodMs: 60_000, nextFreeMs: 0 });
    await limiter.acquire();
    expect(limiter.stats().window).toMatchObject({ calls: 3, remaining: 0, periodMs: 60_000, nextFreeMs: 50_000 });
    await clock.advance(50_000);
    expect(limiter.stats().window).toMatchObject({ calls: 2, remaining: 1, periodMs: 60_000, nextFreeMs: 0 });
    await clock.advance(10_000);
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 3, periodMs: 60_000, nextFreeMs: 0 });
  });

  it("S5.2 a reset empties the window", async () => {
    const { limiter } = keyRig({ window: "2/60s" });
    await startsOf(many(2, () => limiter.acquire()));
    limiter.reset();
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 2 });
    expect((await startsOf(many(2, () => limiter.acquire()))).length).toBe(2);
    expect(limiter.check().waitMs).toBe(60_000);
  });

  it("S5.3 four workers that share a limiter stay within the window together", async () => {
    const { clock, limiter } = keyRig({ window: "10/1s" });
    const starts: number[] = [];
    const workers = many(4, async () => {
      for (let index = 0; index < 25; index += 1) starts.push((await limiter.acquire()).startedAtMs);
    });
    await clock.advance(10_000);
    await Promise.all(workers);
    expect(starts).toHaveLength(100);
    expect(mostWithin(starts, 1_000)).toBe(10);
    expect(Math.max(...starts)).toBe(9_000);
  });

  it("S5.4 429 answers hold for 10, 20, 40 s, and for 40 s from then on", async () => {
    const { clock, limiter } = keyRig({ window: "60/min", cooldown: ["10s", "20s", "40s"] });
    const starts: number[] = [];
    const client = (async () => {
      for (let attempt = 0; attempt < 5; attempt += 1) {
        await limiter.run((permit) => {
          starts.push(permit.startedAtMs);
          return { status: 429 };
        });
      }
    })();
    await clock.advance(110_000);
    await client;
    expect(starts).toEqual([0, 10_000, 30_000, 70_000, 110_000]);
  });

  it("S5.4 a client that gives up after its retries leaves the host held", async () => {
    const { clock, limiter } = keyRig({ window: "60/min", cooldown: ["10s", "20s", "40s"] });
    for (let attempt = 0; attempt < 2; attempt += 1) {
      (await limiter.acquire()).release({ status: 429 });
      await clock.advance(attempt === 0 ? 10_000 : 0);
    }
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 20_000 });
  });

  it.each([
    ["anonymous", "60/min", 60],
    ["authenticated", "100/min", 100],
  ] as const)("S5.4 %s callers get %s", async (_name, window, count) => {
    const { clock, limiter } = keyRig({ window });
    const permits = many(count + 1, () => limiter.acquire());
    await clock.advance(60_000);
    const starts = await startsOf(permits);
    expect(starts.filter((start) => start === 0)).toHaveLength(count);
    expect(starts[count]).toBe(60_000);
  });
});
