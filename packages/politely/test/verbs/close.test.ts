import { describe, expect, it } from "vitest";
import { ClosedError } from "../../src/index.js";
import { expectBooks, failure, keyRig, many, rig, startsOf, track } from "./support.js";

describe("close", () => {
  it("rejects those waiting with ClosedError and refuses new work", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    await limiter.acquire("a.org");
    const waiting = many(3, () => failure(limiter.acquire("a.org")));
    await limiter.close();
    for (const error of await Promise.all(waiting)) {
      expect(error).toBeInstanceOf(ClosedError);
      expect(error).toMatchObject({ code: "POLITELY_CLOSED", key: "a.org" });
    }
    expect(await failure(limiter.acquire("a.org"))).toBeInstanceOf(ClosedError);
    expect(await failure(limiter.run("a.org", () => 1))).toBeInstanceOf(ClosedError);
    expect(await failure(limiter.wrap("a.org", () => 1)())).toBeInstanceOf(ClosedError);
    expect(() => limiter.tryAcquire("a.org")).toThrow(ClosedError);
    expect(clock.pendingTimers).toBe(0);
    expectBooks(limiter.stats("a.org"));
  });

  it("with drain serves those waiting first, at their pace, and refuses new work meanwhile", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    const permits = many(4, () => limiter.acquire());
    const closed = track(limiter.close({ drain: true }));
    expect(await failure(limiter.acquire())).toBeInstanceOf(ClosedError);
    expect(() => limiter.tryAcquire()).toThrow(ClosedError);
    await clock.advance(2_000);
    expect(closed.state).toBe("pending");
    await clock.advance(1_000);
    expect(closed.state).toBe("done");
    expect(await startsOf(permits)).toEqual([0, 1_000, 2_000, 3_000]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("with drain waits for a cooldown too", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1 });
    limiter.record({ kind: "rate_limited", retryAfterMs: 10_000 });
    const waiting = limiter.acquire();
    const closed = track(limiter.close({ drain: true }));
    await clock.advance(9_999);
    expect(closed.state).toBe("pending");
    await clock.advance(1);
    expect((await waiting).startedAtMs).toBe(10_000);
    await clock.settle();
    expect(closed.state).toBe("done");
  });

  it("with drain lets a waiter give up", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1h" });
    await limiter.acquire();
    const abort = new AbortController();
    const waiting = failure(limiter.acquire({ signal: abort.signal }));
    const closed = track(limiter.close({ drain: true }));
    abort.abort("enough");
    expect(await waiting).toBe("enough");
    await clock.settle();
    expect(closed.state).toBe("done");
  });

  it("without drain ends a drain that goes on", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1h" });
    await limiter.acquire();
    const waiting = failure(limiter.acquire());
    const drained = track(limiter.close({ drain: true }));
    await limiter.close();
    expect(await waiting).toBeInstanceOf(ClosedError);
    await clock.settle();
    expect(drained.state).toBe("done");
  });

  it("can be called again and again", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    await Promise.all([limiter.close(), limiter.close(), limiter.close({ drain: true })]);
    await expect(limiter.close()).resolves.toBeUndefined();
  });

  it("does not wait for what is in flight, which may still be released", async () => {
    const { limiter } = keyRig({ concurrency: 2 });
    const permits = await Promise.all(many(2, () => limiter.acquire()));
    await limiter.close();
    permits[0].release("success");
    permits[1].release("rate_limited");
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 2 });
  });

  it("leaves the statistics readable", async () => {
    const { limiter } = rig();
    await limiter.acquire("a.org");
    await limiter.close();
    expect(limiter.stats("a.org")?.totalRequests).toBe(1);
    expect(limiter.stats()).toHaveLength(1);
    expect(limiter.elapsedMs("a.org")).toBe(0);
  });

  it("of a limiter never used resolves at once", async () => {
    const { clock, limiter } = rig();
    await limiter.close();
    expect(clock.pendingTimers).toBe(0);
  });
});
