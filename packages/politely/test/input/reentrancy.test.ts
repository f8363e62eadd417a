import { describe, expect, it } from "vitest";
import type { LimiterEvent, Permit } from "../../src/index.js";
import { ClosedError } from "../../src/index.js";
import type { Tracked } from "../verbs/support.js";
import { expectBooks, gapsOf, keyRig, many, mostWithin, rig, track } from "../verbs/support.js";

describe("a listener that calls the limiter", () => {
  it("asking for more at each grant keeps the limits", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const permits: Tracked<Permit>[] = [];
    limiter.subscribe((event) => {
      if (event.type === "grant" && permits.length < 50) permits.push(track(limiter.acquire()));
    });
    permits.push(track(limiter.acquire()));
    await clock.advance(10_000);
    const starts = permits.map((permit) => permit.value?.startedAtMs ?? Number.NaN);
    expect(starts.length).toBeGreaterThanOrEqual(50);
    expect(new Set(gapsOf(starts.sort((a, b) => a - b)))).toEqual(new Set([100]));
    expectBooks(limiter.stats());
  });

  it("trying for more at each grant never takes more than there is", async () => {
    const { clock, limiter } = keyRig({ window: "5/s" });
    const starts: number[] = [];
    limiter.subscribe((event) => {
      if (event.type !== "grant") return;
      starts.push(event.atMs);
      limiter.tryAcquire();
    });
    void many(10, () => track(limiter.acquire()));
    await clock.advance(10_000);
    expect(mostWithin(starts, 1_000)).toBe(5);
    expectBooks(limiter.stats());
  });

  it("releasing another permit at each wait frees one place per release", async () => {
    const { clock, limiter } = keyRig({ concurrency: 2 });
    const held: Permit[] = [];
    let inFlight = 0;
    let most = 0;
    limiter.subscribe((event) => {
      if (event.type === "grant") inFlight += 1;
      most = Math.max(most, inFlight);
      if (event.type === "release") inFlight -= 1;
      if (event.type === "wait") held.shift()?.release("success");
    });
    const all = many(20, () => limiter.acquire().then((permit) => held.push(permit)));
    await clock.settle();
    while (held.length > 0) {
      held.shift()?.release("success");
      await clock.settle();
    }
    await Promise.all(all);
    expect(most).toBeLessThanOrEqual(2);
    expect(limiter.stats()).toMatchObject({ granted: 20, released: 20, inFlight: 0, waiting: 0 });
  });

  it("cancelling everybody at a wait rejects them all, the one just told about too or not, but leaves none hanging", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    let waits = 0;
    limiter.subscribe((event) => {
      if (event.type === "wait") waits += 1;
      if (event.type === "wait" && waits === 5) limiter.cancelWaiting("stop");
    });
    const all = many(8, () => track(limiter.acquire()));
    await clock.advance(20_000);
    expect(all.filter((waiter) => waiter.state === "pending")).toEqual([]);
    expect(limiter.stats().waiting).toBe(0);
    expectBooks(limiter.stats());
  });

  it("cancelling at a cancel goes no deeper than there are waiters", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    let calls = 0;
    limiter.subscribe((event) => {
      if (event.type !== "cancel") return;
      calls += 1;
      limiter.cancelWaiting("again");
    });
    const all = many(10, () => track(limiter.acquire()));
    limiter.cancelWaiting("first");
    await clock.settle();
    expect(all.filter((waiter) => waiter.state === "failed")).toHaveLength(9);
    expect(calls).toBe(9);
    expectBooks(limiter.stats());
  });

  it("changing the limits at each grant applies them to the next", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    let delay = 100;
    limiter.subscribe((event) => {
      if (event.type !== "grant") return;
      delay += 100;
      limiter.configure({ minDelay: delay });
    });
    const all = many(5, () => track(limiter.acquire()));
    await clock.advance(10_000);
    const starts = all.map((permit) => permit.value?.startedAtMs ?? Number.NaN);
    expect(gapsOf(starts)).toEqual([200, 300, 400, 500]);
  });

  it("closing at a grant rejects the rest", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    limiter.subscribe((event) => {
      if (event.type === "grant" && event.atMs >= 200) void limiter.close();
    });
    const all = many(6, () => track(limiter.acquire()));
    await clock.advance(10_000);
    expect(all.map((waiter) => waiter.state)).toEqual(["done", "done", "done", "failed", "failed", "failed"]);
    expect(all.slice(3).every((waiter) => waiter.error instanceof ClosedError)).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    expectBooks(limiter.stats());
  });

  it("resetting at each grant leaves nobody hanging and the books balanced", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    limiter.subscribe((event) => {
      if (event.type === "grant") limiter.reset();
    });
    const all = many(20, () => track(limiter.acquire()));
    await clock.advance(5_000);
    expect(all.every((waiter) => waiter.state === "done")).toBe(true);
    expectBooks(limiter.stats());
  });

  it("pausing at a grant holds the next, and resuming at the pause lets it go", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    limiter.subscribe((event) => {
      if (event.type === "grant") limiter.pause("1s");
    });
    const all = many(3, () => track(limiter.acquire()));
    await clock.advance(5_000);
    expect(all.map((waiter) => waiter.value?.startedAtMs)).toEqual([0, 1_000, 2_000]);
  });

  it("aborting another waiter's signal at a grant takes that one out", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const aborts = many(5, () => new AbortController());
    let grants = 0;
    limiter.subscribe((event) => {
      if (event.type !== "grant") return;
      grants += 1;
      if (grants === 2) aborts[2].abort("out");
    });
    const all = aborts.map((abort) => track(limiter.acquire({ signal: abort.signal })));
    await clock.advance(1_000);
    expect(all.map((waiter) => waiter.value?.startedAtMs ?? waiter.error)).toEqual([0, 100, "out", 200, 300]);
  });

  it("reading statistics and reasons at every event sees balanced books", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 50, concurrency: 3, maxHold: "1s" } });
    const wrong: LimiterEvent[] = [];
    limiter.subscribe((event) => {
      limiter.explain("a.org");
      limiter.check("a.org");
      const stats = limiter.stats("a.org");
      if (stats === undefined) return;
      const ended = stats.granted + stats.refused + stats.cancelled + stats.expired + stats.waiting;
      if (stats.asked !== ended || stats.granted !== stats.released + stats.lapsed + stats.inFlight) wrong.push(event);
    });
    const abort = new AbortController();
    const all = many(12, (index) =>
      track(limiter.acquire("a.org", index % 4 === 3 ? { signal: abort.signal } : { maxWait: "3s" })),
    );
    await clock.advance(120);
    abort.abort();
    all[0].value?.release("server_error");
    await clock.advance(30_000);
    limiter.record("a.org", "success");
    limiter.tryAcquire("a.org");
    limiter.tryAcquire("a.org");
    expect(wrong).toEqual([]);
  });

  it("subscribing and unsubscribing inside an event disturbs no other listener", async () => {
    const { limiter } = rig();
    const heard: string[] = [];
    const stop = limiter.subscribe(() => {
      heard.push("first");
      stop();
      limiter.subscribe(() => heard.push("inner"));
    });
    limiter.subscribe(() => heard.push("second"));
    await limiter.acquire("a.org");
    await limiter.acquire("b.org");
    expect(heard.filter((name) => name === "first")).toHaveLength(1);
    expect(heard.filter((name) => name === "second")).toHaveLength(2);
    expect(heard.filter((name) => name === "inner").length).toBeGreaterThanOrEqual(1);
  });
});

describe("a task or a caller that calls the limiter", () => {
  it("asking again inside a task waits for another place, not its own", async () => {
    const { clock, limiter } = keyRig({ concurrency: 2 });
    const nested = limiter.run(() => limiter.run(() => "inner"));
    await clock.settle();
    expect(await nested).toBe("inner");
    expect(limiter.stats()).toMatchObject({ inFlight: 0, granted: 2, released: 2 });
  });

  it("closing inside a task lets the task end", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    const result = await limiter.run(async () => {
      await limiter.close();
      return "ended";
    });
    expect(result).toBe("ended");
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it("releasing inside the continuation of a grant passes the place on in the same instant", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    const starts: number[] = [];
    const all = many(100, () =>
      limiter.acquire().then((permit) => {
        starts.push(permit.startedAtMs);
        permit.release("success");
      }),
    );
    await clock.settle();
    await Promise.all(all);
    expect(new Set(starts)).toEqual(new Set([0]));
  });
});
