import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { ClosedError, DeadlineError, QueueFullError } from "../../src/index.js";
import { expectBooks, failure, keyRig, many, only, rig, startsOf, track } from "./support.js";

describe("acquire", () => {
  it("grants at once where there is room, with the key and the instant", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    await clock.advance(123);
    const permit = await limiter.acquire("https://Example.com/page");
    expect(permit).toMatchObject({ key: "example.com", startedAtMs: 123, waitedMs: 0 });
    expect(permit.token).toBeUndefined();
  });

  it("without a policy paces each host at one start per second", async () => {
    const { clock, limiter } = rig();
    const permits = many(3, () => limiter.acquire("x.org"));
    await clock.advance(2_000);
    expect(await startsOf(permits)).toEqual([0, 1_000, 2_000]);
  });

  it("grants in the order of arrival", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    const order: number[] = [];
    const all = many(20, (index) => limiter.acquire().then(() => order.push(index)));
    await clock.advance(200);
    await Promise.all(all);
    expect(order).toEqual(many(20, (index) => index));
  });

  it("keeps all limits of an entry at once", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100, rate: "2/s", burst: 3, window: "4/5s" });
    const permits = many(6, () => limiter.acquire());
    await clock.advance(6_000);
    expect(await startsOf(permits)).toEqual([0, 100, 200, 500, 5_000, 5_100]);
  });

  it("rejects with the reason of a signal that was aborted before, and takes nothing", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    const reason = new Error("never mind");
    expect(await failure(limiter.acquire({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect((await limiter.acquire()).waitedMs).toBe(0);
    expectBooks(limiter.stats());
  });

  it("rejects with whatever reason the signal carries, a plain value too", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const abort = new AbortController();
    const waiting = failure(limiter.acquire({ signal: abort.signal }));
    abort.abort("plain words");
    expect(await waiting).toBe("plain words");
  });

  it("counts an aborted wait as cancelled, with its event", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const abort = new AbortController();
    const waiting = failure(limiter.acquire({ signal: abort.signal }));
    await clock.advance(250);
    abort.abort();
    await waiting;
    expect(only(events, "cancel")).toMatchObject([{ atMs: 250, waitedMs: 250 }]);
    expect(limiter.stats()).toMatchObject({ cancelled: 1, cancelledRequests: 1, waiting: 0 });
  });

  it("leaves no listener behind on a signal shared by many waits", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    let listening = 0;
    const abort = new AbortController();
    const { signal } = abort;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listening += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listening -= 1;
      remove(...args);
    };
    const permits = many(50, () => limiter.acquire({ signal }));
    await clock.advance(1_000);
    await Promise.all(permits);
    expect(listening).toBe(0);
  });

  it("refuses at once what cannot start within maxWait, with the wait and the reason", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const error = await failure(limiter.acquire({ maxWait: "500ms" }));
    expect(error).toBeInstanceOf(DeadlineError);
    expect(error).toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 1_000 });
    expect((error as DeadlineError).reason).not.toBe("");
    expect(clock.now()).toBe(0);
    expect(only(events, "refuse")).toMatchObject([{ code: "POLITELY_DEADLINE", waitMs: 1_000 }]);
    expect(limiter.stats()).toMatchObject({ refused: 1, waiting: 0 });
  });

  it("says that there is no end in sight where there is none", async () => {
    const { limiter } = keyRig({ rate: "1/s" });
    limiter.pause();
    const { waitMs, message } = (await failure(limiter.acquire({ maxWait: "5s" }))) as DeadlineError;
    expect(waitMs).toBe(Number.POSITIVE_INFINITY);
    expect(message).toContain("within its maxWait of 5000 ms: no end in sight, ");
  });

  it("lets a wait of exactly maxWait be", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const waiting = limiter.acquire({ maxWait: "1s" });
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("never waits with a maxWait of 0, and grants where there is room", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    expect((await limiter.acquire({ maxWait: 0 })).waitedMs).toBe(0);
    expect(await failure(limiter.acquire({ maxWait: 0 }))).toBeInstanceOf(DeadlineError);
  });

  it("accepts an infinite maxWait", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", maxWait: 10 });
    await limiter.acquire();
    const waiting = limiter.acquire({ maxWait: Number.POSITIVE_INFINITY });
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("takes maxWait from the limits where the call has none, the smallest of those that apply", async () => {
    const { limiter } = rig({ default: { minDelay: "10s", maxWait: "20s" }, global: { minDelay: 1, maxWait: "5s" } });
    await limiter.acquire("x.org");
    expect(await failure(limiter.acquire("x.org"))).toBeInstanceOf(DeadlineError);
  });

  it("expires a waiter at its deadline where the wait could not be foreseen", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    const waiting = track(limiter.acquire({ maxWait: "2s" }));
    await clock.advance(1_999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.error).toBeInstanceOf(DeadlineError);
    expect(only(events, "expire")).toMatchObject([{ what: "waiter", afterMs: 2_000, atMs: 2_000 }]);
    expect(limiter.stats()).toMatchObject({ expired: 1, refused: 0, waiting: 0 });
    permit.release();
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("foresees the wait of those ahead, so that a hopeless one is refused at once", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    void many(5, () => track(limiter.acquire()));
    const error = await failure(limiter.acquire({ maxWait: "4s" }));
    expect(error).toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 5_000 });
    expect(limiter.stats().waiting).toBe(4);
  });

  it("rejects when the queue is full", async () => {
    const { limiter, events } = keyRig({ minDelay: "1s", maxQueue: 3 });
    void many(4, () => track(limiter.acquire()));
    const error = await failure(limiter.acquire());
    expect(error).toBeInstanceOf(QueueFullError);
    expect(error).toMatchObject({ code: "POLITELY_QUEUE_FULL", limit: 3 });
    expect(only(events, "refuse")).toMatchObject([{ code: "POLITELY_QUEUE_FULL" }]);
    expectBooks(limiter.stats());
  });

  it("with a maxQueue of 0 refuses everything that would have to wait", async () => {
    const { limiter } = keyRig({ minDelay: "1s", maxQueue: 0 });
    expect((await limiter.acquire()).waitedMs).toBe(0);
    expect(await failure(limiter.acquire())).toBeInstanceOf(QueueFullError);
  });

  it("rejects after close", async () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    await limiter.close();
    expect(await failure(limiter.acquire())).toBeInstanceOf(ClosedError);
  });

  it("keeps the async context of each caller through the wait", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    const storage = new AsyncLocalStorage<number>();
    const seen = many(10, (index) =>
      storage.run(index, async () => {
        await limiter.acquire();
        return storage.getStore();
      }),
    );
    await clock.advance(100);
    expect(await Promise.all(seen)).toEqual(many(10, (index) => index));
  });

  it("uses one timer for all waiters of all hosts, and none when nobody waits", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const permits = many(100, (index) => many(3, () => limiter.acquire(`h${index}.org`)));
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(2_000);
    await Promise.all(permits.flat());
    expect(clock.pendingTimers).toBe(0);
  });

  it("starts together those of different hosts", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    const permits = many(10, (index) => many(2, () => limiter.acquire(`h${index}.org`)));
    await clock.advance(1_000);
    for (const host of permits) expect(await startsOf(host)).toEqual([0, 1_000]);
  });
});

describe("a permit", () => {
  it("gives its place back when it is disposed of, with nothing learned", async () => {
    const { limiter, events } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    permit[Symbol.dispose]();
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1, cooldownMs: 0 });
    expect(limiter.tryAcquire()).toBeDefined();
    expect(only(events, "release")).toHaveLength(1);
  });

  it("counts only its first release: a later outcome changes nothing", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    permit.release("success");
    permit.release("rate_limited");
    permit[Symbol.dispose]();
    expect(limiter.stats()).toMatchObject({ cooldownMs: 0, released: 1, throttledRequests: 0 });
  });

  it("disposed of first ignores a later release", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    permit[Symbol.dispose]();
    permit.release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(0);
  });

  it("may be released after the limiter was closed", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = await limiter.acquire();
    await limiter.close();
    permit.release("success");
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });
});
