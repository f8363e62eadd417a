import { describe, expect, it } from "vitest";
import { DeadlineError, PolicyError } from "../../src/index.js";
import { granted, keyRig, many, memoryLogger, only, rig, startsOf, track } from "./support.js";

describe("configure", () => {
  it("applies a shorter gap to everybody queued at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: "10s" });
    const permits = many(3, () => limiter.acquire());
    await clock.advance(500);
    limiter.configure({ minDelay: "1s" });
    await clock.advance(1_500);
    expect(await startsOf(permits)).toEqual([0, 1_000, 2_000]);
  });

  it("applies a longer gap to everybody queued at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    const permits = many(3, () => limiter.acquire());
    await clock.advance(500);
    limiter.configure({ minDelay: "10s" });
    await clock.advance(19_500);
    expect(await startsOf(permits)).toEqual([0, 10_000, 20_000]);
  });

  it("starts a waiter at once that may go by the new limits", async () => {
    const { clock, limiter } = keyRig({ minDelay: "10s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire());
    await clock.advance(3_000);
    limiter.configure({ minDelay: "1s" });
    await clock.settle();
    expect(waiting.value?.startedAtMs).toBe(3_000);
  });

  it("a larger bucket gives nothing that could not have been spent before", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 2 });
    await limiter.acquire({ cost: 2 });
    limiter.configure({ rate: "1/s", burst: 10 });
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(1_000);
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("changing a bucket to and fro mints nothing", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 5 });
    let taken = 0;
    for (let step = 0; step < 100; step += 1) {
      limiter.configure({ rate: "1/s", burst: step % 2 === 0 ? 1 : 5 });
      while (limiter.tryAcquire() !== undefined) taken += 1;
      await clock.advance(100);
    }
    expect(taken).toBeLessThanOrEqual(5 + 10);
  });

  it("windows judge the starts already made by the new numbers", async () => {
    const { clock, limiter } = keyRig({ window: "2/min" });
    await Promise.all([limiter.acquire(), limiter.acquire()]);
    limiter.configure({ window: "3/min" });
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(10_000);
    limiter.configure({ window: "3/20s" });
    expect(limiter.check().waitMs).toBe(10_000);
    limiter.configure({ window: "1/20s" });
    expect(limiter.check().waitMs).toBe(10_000);
  });

  it("a lower concurrency starts nobody until enough have come back", async () => {
    const { clock, limiter } = keyRig({ concurrency: 3 });
    const permits = await Promise.all(many(3, () => limiter.acquire()));
    const waiting = track(limiter.acquire());
    limiter.configure({ concurrency: 1 });
    permits[0].release();
    permits[1].release();
    await clock.settle();
    expect(waiting.state).toBe("pending");
    permits[2].release();
    await clock.settle();
    expect(waiting.state).toBe("done");
  });

  it("a higher concurrency starts those waiting at once", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    const permits = many(3, () => track(limiter.acquire()));
    limiter.configure({ concurrency: 3 });
    await clock.settle();
    expect(permits.map((permit) => permit.state)).toEqual(["done", "done", "done"]);
  });

  it("turning the limits off lets everybody go at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1h" });
    const permits = many(5, () => track(limiter.acquire()));
    limiter.configure({ enabled: false, minDelay: "1h" });
    await clock.settle();
    expect(permits.every((permit) => permit.state === "done")).toBe(true);
  });

  it("keeps a cooldown that runs", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    limiter.record("rate_limited");
    limiter.configure({ minDelay: 2, cooldown: "1s" });
    expect(limiter.stats().cooldownMs).toBe(60_000);
  });

  it.each([undefined, new AbortController().signal])(
    "leaves a wait without end that the caller asked for as it is",
    async (signal) => {
      const { clock, limiter } = keyRig({ minDelay: "10s" });
      await limiter.acquire();
      const waiting = track(limiter.acquire({ maxWait: Number.POSITIVE_INFINITY, ...(signal && { signal }) }));
      limiter.configure({ minDelay: "10s", maxWait: "1s" });
      await clock.advance(10_000);
      expect(waiting.state).toBe("done");
    },
  );

  it("refuses those whose deadline has become impossible, at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = track(limiter.acquire({ maxWait: "5s" }));
    limiter.configure({ minDelay: "1min" });
    await clock.settle();
    expect(waiting.error).toBeInstanceOf(DeadlineError);
    expect(limiter.stats()).toMatchObject({ refused: 1, expired: 0 });
  });

  it("does not leave a waiter hanging whose cost can never fit any more", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 5 });
    await limiter.acquire({ cost: 5 });
    const heavy = track(limiter.acquire({ cost: 5 }));
    const light = track(limiter.acquire());
    limiter.configure({ rate: "1/s", burst: 2 });
    await clock.advance(10_000);
    expect(heavy.state).toBe("failed");
    expect(heavy.error).toBeInstanceOf(RangeError);
    expect(light.state).toBe("done");
  });

  it("replaces the whole policy: hosts, wildcards, default and global", async () => {
    const { limiter } = rig({
      hosts: { "a.org": { minDelay: "9s" } },
      default: { minDelay: "8s" },
      global: { minDelay: 1 },
    });
    limiter.configure({ hosts: { "*.org": { minDelay: "3s" } }, default: { minDelay: "2s" } });
    for (const host of ["a.org", "b.net"]) granted(limiter.tryAcquire(host));
    expect(limiter.check("a.org").waitMs).toBe(3_000);
    expect(limiter.check("b.net").waitMs).toBe(2_000);
    expect(limiter.explain("a.org").origin).toBe("hosts.*.org");
  });

  it("a global limit that is new holds from then on", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } });
    await limiter.acquire("a.org");
    limiter.configure({ default: { minDelay: 1 }, global: { minDelay: "1s" } });
    await clock.advance(10);
    const permits = many(3, (index) => limiter.acquire(`h${index}.org`));
    await clock.advance(5_000);
    const starts = await startsOf(permits);
    expect(starts[1] - starts[0]).toBe(1_000);
    expect(starts[2] - starts[1]).toBe(1_000);
  });

  it("a bad policy throws and changes nothing", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = limiter.acquire();
    expect(() => limiter.configure({ minDelay: "2s", burst: 0 })).toThrow(PolicyError);
    expect(only(events, "configure")).toEqual([]);
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("is told as an event", async () => {
    const { clock, limiter, events } = rig();
    await clock.advance(42);
    limiter.configure({ default: { minDelay: "2s" } });
    const [event] = only(events, "configure");
    expect(event).toMatchObject({ key: "*", atMs: 42 });
    expect(event.summary).not.toBe("");
  });

  it("a doubtful policy is warned about, as an event and in the log", () => {
    const logger = memoryLogger();
    const { limiter, events } = rig({}, { logger });
    limiter.configure({ default: { rate: "1/s", burst: 1_000 } });
    expect(only(events, "warn")).toHaveLength(1);
    expect(logger.lines.warn).toHaveLength(1);
  });

  it("the same policy over and over changes nothing for those waiting", async () => {
    const { clock, limiter } = keyRig({ minDelay: 300, window: "3/2s" });
    const permits = many(7, () => limiter.acquire());
    for (let step = 0; step < 50; step += 1) {
      limiter.configure({ minDelay: 300, window: "3/2s" });
      await clock.advance(100);
    }
    expect(await startsOf(permits)).toEqual([0, 300, 600, 2_000, 2_300, 2_600, 4_000]);
  });
});
