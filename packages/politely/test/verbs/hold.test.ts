import { describe, expect, it } from "vitest";
import { expectBooks, granted, keyRig, many, only, rig, startsOf, track } from "./support.js";

describe("concurrency", () => {
  it("bounds what is in flight and passes each place on at once", async () => {
    const { clock, limiter } = keyRig({ concurrency: 2 });
    const permits = many(4, () => track(limiter.acquire()));
    await clock.advance(1_000);
    expect(permits.map((permit) => permit.state)).toEqual(["done", "done", "pending", "pending"]);
    permits[1].value?.release("success");
    await clock.advance(500);
    expect(permits[2].value?.startedAtMs).toBe(1_000);
    permits[0].value?.release();
    await clock.settle();
    expect(permits[3].value?.startedAtMs).toBe(1_500);
  });

  it("is each host's own", async () => {
    const { limiter } = rig({ default: { concurrency: 1 } });
    granted(limiter.tryAcquire("a.org"));
    expect(limiter.tryAcquire("a.org")).toBeUndefined();
    expect(limiter.tryAcquire("b.org")).toBeDefined();
  });
});

describe("maxHold", () => {
  it("gives the place of a permit back that is not released in time, with an event", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 1, maxHold: "5s" });
    granted(limiter.tryAcquire());
    const waiting = track(limiter.acquire());
    await clock.advance(4_999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(5_000);
    expect(only(events, "expire")).toMatchObject([{ what: "permit", afterMs: 5_000, atMs: 5_000 }]);
    expect(limiter.stats()).toMatchObject({ lapsed: 1, inFlight: 1, released: 0 });
    expectBooks(limiter.stats());
  });

  it("is ten minutes where none is given", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    granted(limiter.tryAcquire());
    await clock.advance(599_999);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(1);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("does not reach a permit that was released in time", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 1, maxHold: "5s" });
    granted(limiter.tryAcquire()).release("success");
    await clock.advance(3_000);
    granted(limiter.tryAcquire());
    await clock.advance(4_999);
    expect(only(events, "expire")).toEqual([]);
    await clock.advance(1);
    expect(limiter.stats().inFlight).toBe(0);
    expect(only(events, "expire")).toHaveLength(1);
  });

  it("a late release still reports its outcome, and changes no count", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, maxHold: "5s" });
    const late = granted(limiter.tryAcquire());
    await clock.advance(5_000);
    granted(limiter.tryAcquire());
    late.release("rate_limited");
    expect(limiter.stats()).toMatchObject({
      lapsed: 1,
      released: 0,
      inFlight: 1,
      cooldownMs: 60_000,
      throttledRequests: 1,
    });
    expectBooks(limiter.stats());
  });

  it("without a concurrency counts a permit as lapsed once its key has not started for as long", async () => {
    const { clock, limiter } = keyRig({ minDelay: 1 });
    granted(limiter.tryAcquire());
    await clock.advance(599_999);
    expect(limiter.stats()).toMatchObject({ inFlight: 1, lapsed: 0 });
    await clock.advance(1);
    expect(limiter.stats()).toMatchObject({ inFlight: 0, lapsed: 1 });
    expectBooks(limiter.stats());
  });
});

describe("countFrom: 'answer'", () => {
  it("runs the gap from the release", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", countFrom: "answer" });
    const first = granted(limiter.tryAcquire());
    const waiting = track(limiter.acquire());
    await clock.advance(5_000);
    expect(waiting.state).toBe("pending");
    first.release("success");
    await clock.advance(999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(6_000);
  });

  it("runs each place in a window from the release of its request", async () => {
    const { clock, limiter } = keyRig({ window: "2/10s", countFrom: "answer" });
    const permits = [granted(limiter.tryAcquire()), granted(limiter.tryAcquire())];
    const later = many(2, () => limiter.acquire());
    await clock.advance(3_000);
    permits[0].release("success");
    await clock.advance(4_000);
    permits[1].release("success");
    await clock.advance(10_000);
    expect(await startsOf(later)).toEqual([13_000, 17_000]);
  });

  it("keeps the site's side of a window right however long answers take", async () => {
    const { clock, limiter } = keyRig({ window: "3/s", countFrom: "answer" });
    const seen: number[] = [];
    const requests = many(30, (index) =>
      limiter.run(async () => {
        const latencyMs = [5, 700, 40, 310][index % 4];
        await new Promise<void>((resolve) => void clock.setTimer(clock.now() + latencyMs, resolve));
        seen.push(clock.now());
      }),
    );
    await clock.advance(60_000);
    await Promise.all(requests);
    // The site counts a request anywhere between its start and its answer; at the answer is the latest.
    const sorted = [...seen].sort((a, b) => a - b);
    for (let index = 3; index < sorted.length; index += 1)
      expect(sorted[index] - sorted[index - 3]).toBeGreaterThanOrEqual(1_000);
  });

  it("gives all back when the permit was not used", () => {
    const { limiter } = keyRig({ minDelay: "1s", window: "1/min", countFrom: "answer" });
    granted(limiter.tryAcquire()).release("unused");
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
  });

  it("counts a recorded request from when it is recorded at the latest", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", countFrom: "answer" });
    await clock.advance(500);
    limiter.record("success");
    expect(limiter.check().waitMs).toBe(1_000);
  });

  it("an answer that never comes frees the gap at maxHold", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", countFrom: "answer", maxHold: "10s" });
    granted(limiter.tryAcquire());
    const waiting = track(limiter.acquire());
    await clock.advance(9_999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1_001);
    expect(waiting.state).toBe("done");
    expect(waiting.value?.startedAtMs).toBeGreaterThanOrEqual(10_000);
  });
});
