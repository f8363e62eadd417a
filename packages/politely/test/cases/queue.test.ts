import { describe, expect, it } from "vitest";
import { QueueFullError } from "../../src/index.js";
import { expectBooks, failure, gapsOf, granted, keyRig, many, rig, startsOf, track } from "../verbs/support.js";

describe("queue", () => {
  it("when 50 waiters are cancelled the 51st starts as if they had never come (Go)", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const abort = new AbortController();
    const cancelled = many(50, () => failure(limiter.acquire({ signal: abort.signal })));
    const last = limiter.acquire();
    await clock.advance(300);
    abort.abort();
    await Promise.all(cancelled);
    await clock.advance(700);
    expect((await last).startedAtMs).toBe(1_000);
  });

  it.each([
    ["from the front", [0, 1, 2, 3, 4]],
    ["from the back", [9, 8, 7, 6, 5]],
    ["every other one", [1, 3, 5, 7, 9]],
  ])("waiters cancelled %s leave the others exactly the times of a shorter queue", async (_name, gone) => {
    const { clock, limiter } = keyRig({ rate: "2/s", burst: 1 });
    await limiter.acquire();
    const aborts = many(10, () => new AbortController());
    const waiting = aborts.map((abort) => limiter.acquire({ signal: abort.signal }));
    const failed = gone.map((index) => failure(waiting[index]));
    await clock.advance(100);
    for (const index of gone) aborts[index].abort();
    await Promise.all(failed);
    await clock.advance(10_000);
    const survivors = waiting.filter((_, index) => !gone.includes(index));
    expect(await startsOf(survivors)).toEqual([500, 1_000, 1_500, 2_000, 2_500]);
  });

  it("cancelled waiters are not counted against the queue any more (.NET 64078)", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", maxQueue: 2 });
    await limiter.acquire();
    const abort = new AbortController();
    const cancelled = many(2, () => failure(limiter.acquire({ signal: abort.signal })));
    expect(await failure(limiter.acquire())).toBeInstanceOf(QueueFullError);
    abort.abort();
    await Promise.all(cancelled);
    expect(limiter.stats().waiting).toBe(0);
    const again = many(2, () => limiter.acquire());
    await clock.advance(2_000);
    expect(await startsOf(again)).toEqual([1_000, 2_000]);
  });

  it("a cancelled heavy waiter at the head lets the light one behind it go at once (.NET 77180)", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 10 });
    await limiter.acquire({ cost: 9 });
    const abort = new AbortController();
    const heavy = failure(limiter.acquire({ cost: 10, signal: abort.signal }));
    const light = track(limiter.acquire());
    await clock.advance(500);
    expect(light.state).toBe("pending");
    abort.abort();
    await heavy;
    await clock.settle();
    expect(light.value?.startedAtMs).toBe(500);
  });

  it("an abort does not let the next one skip the one in front (apex 872)", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const order: string[] = [];
    const abort = new AbortController();
    const first = limiter.acquire().then(() => order.push("first"));
    const second = failure(limiter.acquire({ signal: abort.signal }));
    const third = limiter.acquire().then(() => order.push("third"));
    await clock.advance(200);
    abort.abort();
    await second;
    expect(order).toEqual([]);
    await clock.advance(800);
    expect(order).toEqual(["first"]);
    await clock.advance(1_000);
    expect(order).toEqual(["first", "third"]);
    await Promise.all([first, third]);
  });

  it("a place released twice is freed once (async-sema 57)", async () => {
    const { limiter } = keyRig({ concurrency: 2 });
    const [first] = await Promise.all([limiter.acquire(), limiter.acquire()]);
    first.release("success");
    first.release("success");
    first[Symbol.dispose]();
    expect(limiter.stats()).toMatchObject({ inFlight: 1, released: 1 });
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("a place whose task throws, or whose caller gave up waiting, is not lost (async-sema 57)", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    for (let round = 0; round < 10; round += 1) {
      const abort = new AbortController();
      const thrown = failure(limiter.run(() => Promise.reject(new Error("no"))));
      const waiting = failure(limiter.run(() => "never", { signal: abort.signal }));
      abort.abort();
      await Promise.all([thrown, waiting]);
      await clock.settle();
      expect(limiter.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
    }
    expect(limiter.tryAcquire()).toBeDefined();
    expectBooks(limiter.stats());
  });

  it("an abort after the grant frees nothing: the place is given back by release alone (async-sema 57)", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    const abort = new AbortController();
    const permit = await limiter.acquire({ signal: abort.signal });
    abort.abort();
    await clock.settle();
    expect(limiter.tryAcquire()).toBeUndefined();
    permit.release();
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("reconfiguring does not stop the refill (bottleneck 185)", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 2 });
    const permits = many(22, () => limiter.acquire());
    for (let step = 0; step < 100; step += 1) {
      await clock.advance(200);
      limiter.configure({ rate: "1/s", burst: 2 });
    }
    const starts = await startsOf(permits);
    expect(starts).toEqual([0, 0, ...many(20, (index) => 1_000 * (index + 1))]);
  });

  it("a retry is paced like any other request (bottleneck 170)", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", backoff: "none" });
    const starts: number[] = [];
    const attempt = (): Promise<unknown> =>
      limiter.run((permit) => {
        starts.push(permit.startedAtMs);
        return Promise.reject(Object.assign(new Error("bad gateway"), { status: 502 }));
      });
    const clients = many(3, async () => {
      for (let retry = 0; retry < 3; retry += 1) await failure(attempt());
    });
    await clock.advance(20_000);
    await Promise.all(clients);
    expect(starts).toHaveLength(9);
    expect(new Set(gapsOf(starts))).toEqual(new Set([1_000]));
  });

  it("looking, waiting a tick and then taking never lets two callers have the same place (axios-rate-limit)", async () => {
    const { limiter } = keyRig({ window: "3/min" });
    const callers = many(100, async () => {
      if (!limiter.check().proceed) return undefined;
      await Promise.resolve();
      return limiter.tryAcquire();
    });
    const permits = await Promise.all(callers);
    expect(permits.filter((permit) => permit !== undefined)).toHaveLength(3);
  });

  it("the queue has a bound, 100,000 when none is given, so that promises do not pile up for ever (data-fair 486)", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    granted(limiter.tryAcquire("x.org"));
    const waiting = many(100_000, () => limiter.acquire("x.org").catch((error: unknown) => error));
    const error = await failure(limiter.acquire("x.org"));
    expect(error).toBeInstanceOf(QueueFullError);
    expect(error).toMatchObject({ code: "POLITELY_QUEUE_FULL", key: "x.org", limit: 100_000 });
    expect((await limiter.acquire("y.org")).waitedMs).toBe(0);
    expect(clock.pendingTimers).toBe(1);
    expect(limiter.cancelWaiting("x.org", "enough")).toBe(100_000);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["enough"]));
    expect(clock.pendingTimers).toBe(0);
    expectBooks(limiter.stats("x.org"));
  });
});
