import { describe, expect, it } from "vitest";
import { expectBooks, granted, keyRig, many, mostWithin, rig, track } from "./support.js";

describe("a permit returned as unused", () => {
  it("leaves its windows as if it had never been", async () => {
    const { clock, limiter } = keyRig({ window: ["2/s", "3/min"] });
    granted(limiter.tryAcquire());
    const second = granted(limiter.tryAcquire());
    await clock.advance(100);
    second.release("unused");
    expect(limiter.stats().windows.map((window) => window.calls)).toEqual([1, 1]);
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.check().waitMs).toBe(900);
  });

  it("gives the gap back to the start before it", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    granted(limiter.tryAcquire());
    await clock.advance(1_000);
    const second = granted(limiter.tryAcquire());
    await clock.advance(200);
    expect(limiter.check().waitMs).toBe(800);
    second.release("unused");
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
  });

  it("that was the first start leaves nothing to wait for", () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    granted(limiter.tryAcquire()).release("unused");
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
  });

  it("keeps the gap where another start came after it", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    const first = granted(limiter.tryAcquire());
    await clock.advance(1_000);
    granted(limiter.tryAcquire());
    await clock.advance(100);
    first.release("unused");
    expect(limiter.check().waitMs).toBe(900);
  });

  it("gives its units back to the bucket, never more than it holds", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 3 });
    const permit = granted(limiter.tryAcquire({ cost: 3 }));
    expect(limiter.stats().tokens).toBe(0);
    permit.release("unused");
    expect(limiter.stats().tokens).toBe(3);
    const later = granted(limiter.tryAcquire());
    await clock.advance(10_000);
    later.release("unused");
    expect(limiter.stats().tokens).toBe(3);
  });

  it("never gives the bucket so much that the remaining starts were too many", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 2 });
    const starts: number[] = [];
    const take = (): void => {
      if (limiter.tryAcquire() !== undefined) starts.push(clock.now());
    };
    const early = granted(limiter.tryAcquire());
    await clock.advance(5_000);
    take();
    take();
    early.release("unused");
    take();
    take();
    expect(starts).toEqual([5_000, 5_000]);
  });

  it("frees its concurrency place and wakes the next at once", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, window: "1/h" });
    const permit = granted(limiter.tryAcquire());
    const waiting = track(limiter.acquire());
    await clock.advance(50);
    permit.release("unused");
    await clock.settle();
    expect(waiting.value?.startedAtMs).toBe(50);
    expectBooks(limiter.stats());
  });

  it("gives back to every scope it took from", () => {
    const { limiter } = rig({
      default: { window: "1/min" },
      global: { window: "1/min" },
      scopes: { "key:*": { window: "1/min" } },
    });
    const target = { host: "a.org", scopes: ["key:abc"] };
    granted(limiter.tryAcquire(target)).release("unused");
    expect(limiter.tryAcquire(target)).toBeDefined();
  });

  it("after its start has left the window changes nothing", async () => {
    const { clock, limiter } = keyRig({ window: "2/s" });
    const old = granted(limiter.tryAcquire());
    await clock.advance(1_500);
    many(2, () => granted(limiter.tryAcquire()));
    old.release("unused");
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("as an object of that kind means the same", () => {
    const { limiter } = keyRig({ window: "1/min" });
    granted(limiter.tryAcquire()).release({ kind: "unused" });
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("over and over never lets more real starts through than the limits allow", async () => {
    const { clock, limiter } = keyRig({ window: "5/s", minDelay: 20, rate: "10/s", burst: 3 });
    const starts: number[] = [];
    for (let step = 0; step < 2_000; step += 1) {
      const permit = limiter.tryAcquire();
      if (permit !== undefined && step % 3 === 0) permit.release("unused");
      else if (permit !== undefined) starts.push(permit.startedAtMs);
      await clock.advance(7);
    }
    expect(mostWithin(starts, 1_000)).toBeLessThanOrEqual(5);
    expect(mostWithin(starts, 20)).toBe(1);
  });
});
