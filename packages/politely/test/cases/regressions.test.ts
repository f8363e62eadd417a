import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { seeded } from "../laws/seeded.js";
import { exact, expectBooks, granted, keyRig, only, rig, track } from "../verbs/support.js";

const hourMs = 3_600_000;

describe("a signal that several wait with", () => {
  /** Two wait for a.example and one for b.example with one signal; whoever hears of a cancel cancels the rest of a.example. */
  async function sharedSignal() {
    const { clock, limiter, events } = rig({ default: { minDelay: "1s" } });
    await Promise.all([limiter.acquire("a.example"), limiter.acquire("b.example")]);
    const controller = new AbortController();
    const { signal } = controller;
    const [first, second, other] = ["a.example", "a.example", "b.example"].map((host) =>
      track(limiter.acquire(host, { signal })),
    );
    const isCancelled = new Error("cancelled by the listener");
    limiter.subscribe(({ type }) => {
      if (type === "cancel") limiter.cancelWaiting("a.example", isCancelled);
    });
    return { clock, limiter, events, controller, isCancelled, first, second, other };
  }

  it("never lets one of them start after it is aborted, even when a listener cancels another of them in the middle", async () => {
    const { clock, limiter, events, controller, isCancelled, first, second, other } = await sharedSignal();
    const reason = new Error("enough");
    controller.abort(reason);
    await clock.advance(10_000);
    expect([first.error, second.error, other.error]).toEqual([reason, isCancelled, reason]);
    expect(only(events, "grant").map(({ key }) => key)).toEqual(["a.example", "b.example"]);
    expect(only(events, "cancel")).toHaveLength(3);
    for (const host of ["a.example", "b.example"]) expectBooks(limiter.stats(host));
  });

  it("never lets one of them start after it is aborted, even when its turn has come and the listener makes the queue run", async () => {
    const { clock, limiter, events, controller, first, second, other } = await sharedSignal();
    // The event loop hangs until long after all of them could have started; then the abort comes before the timer.
    clock.stall(5_000);
    const reason = new Error("enough");
    controller.abort(reason);
    await clock.advance(10_000);
    expect([first.state, second.state, other.state]).toEqual(["failed", "failed", "failed"]);
    expect(other.error).toBe(reason);
    expect(only(events, "grant")).toHaveLength(2);
    for (const host of ["a.example", "b.example"]) expectBooks(limiter.stats(host));
  });
});

describe("a start recorded long after it was made", () => {
  it.each([
    { title: "in the hour before", nowMs: 0, laterMs: 1.5 * hourMs, startedAtMs: 0.5 * hourMs },
    { title: "two hours before", nowMs: 0, laterMs: 2.5 * hourMs, startedAtMs: 0.25 * hourMs },
    { title: "days before", nowMs: 0, laterMs: 100 * hourMs, startedAtMs: 3 },
    { title: "before the clock began", nowMs: 0, laterMs: 10, startedAtMs: -5_000 },
    { title: "days before the clock began", nowMs: 0, laterMs: 3 * hourMs, startedAtMs: -90 * hourMs },
    { title: "on a clock below 0", nowMs: -3 * hourMs, laterMs: 1, startedAtMs: -4 * hourMs },
    { title: "on a clock that has passed 0", nowMs: -hourMs, laterMs: 2.5 * hourMs, startedAtMs: -0.5 * hourMs },
  ])("is not in flight and is released: $title", async ({ nowMs, laterMs, startedAtMs }) => {
    const { clock, limiter } = rig({ default: { rate: "10/s", burst: 5 } }, { clock: new VirtualClock({ nowMs }) });
    await clock.advance(laterMs);
    limiter.record("a.example", "success", { startedAtMs });
    limiter.record("a.example", "success", { startedAtMs });
    const inFlight = await limiter.acquire("a.example");
    const stats = limiter.stats("a.example");
    expect(stats).toMatchObject({ granted: 3, released: 2, lapsed: 0, inFlight: 1 });
    expectBooks(stats);
    inFlight.release("success");
    expect(limiter.stats("a.example")).toMatchObject({ granted: 3, released: 3, lapsed: 0, inFlight: 0 });
    const idle = track(limiter.idle());
    await clock.settle();
    expect(idle.state).toBe("done");
  });

  it.each<{ title: string; limits: Limits }>([
    { title: "counted", limits: { rate: "10/s", burst: 5 } },
    { title: "followed", limits: { concurrency: 5 } },
  ])("leaves those in flight on a clock that starts below 0 as they are: $title", async ({ limits }) => {
    const clock = new VirtualClock({ nowMs: -2_000 });
    const { limiter } = rig({ default: { ...limits, maxHold: "1d" } }, { clock });
    const permits = [granted(limiter.tryAcquire("a.example")), granted(limiter.tryAcquire("a.example"))];
    expect(permits[0].startedAtMs).toBe(-2_000);
    limiter.record("a.example", "success", { startedAtMs: -3_000 });
    await clock.advance(4_000);
    expect(limiter.stats("a.example")).toMatchObject({ granted: 3, released: 1, inFlight: 2 });
    for (const permit of permits) permit.release("success");
    expect(limiter.stats("a.example")).toMatchObject({ granted: 3, released: 3, lapsed: 0, inFlight: 0 });
  });
});

describe("a start returned unused", () => {
  it.each([
    { title: "before it", recordedMs: 960 },
    { title: "at the same instant", recordedMs: 1_000 },
  ])("does not make the gap forget another start that was recorded $title", async ({ recordedMs }) => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    await clock.advance(1_000);
    const permit = granted(limiter.tryAcquire());
    limiter.record("success", { startedAtMs: recordedMs });
    permit.release("unused");
    expect(limiter.check().waitMs).toBeGreaterThanOrEqual(recordedMs + 100 - 1_000);
    await clock.advance(recordedMs + 100 - 1_000 - 0.001);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(100);
    expect(limiter.tryAcquire()).toBeDefined();
  });
});

describe("a window that comes to be counted in groups, or no longer is", () => {
  it("never holds one more than its count after a start from before the change is returned (5,001 of 5,000)", async () => {
    const { clock, limiter } = keyRig({ window: "4096/1024ms" });
    await clock.advance(0.5);
    const returned = granted(limiter.tryAcquire());
    limiter.configure({ window: "5000/1024ms" });
    await clock.advance(0.4);
    expect(exact(granted(limiter.tryAcquire({ cost: 4_999 })).startedAtMs)).toBe(0.9);
    returned.release("unused");
    await clock.advance(0.001);
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
    // The two that count are of 0.9 and 0.901 ms.
    for (const atMs of [1_024.5, 1_024.899]) {
      await clock.advance(exact(atMs - clock.now()));
      expect(limiter.tryAcquire(), `at ${atMs} ms`).toBeUndefined();
    }
    // They leave with their group, at the next whole millisecond.
    await clock.advance(exact(1_025 - clock.now()));
    expect(limiter.tryAcquire({ cost: 5_000 })).toBeDefined();
  });

  it("has all its room again once the start that filled it before the change is returned", async () => {
    const { clock, limiter } = keyRig({ window: "5000/1024ms" });
    await clock.advance(0.5);
    const returned = granted(limiter.tryAcquire({ cost: 100 }));
    limiter.configure({ window: "100/1024ms" });
    expect(limiter.tryAcquire()).toBeUndefined();
    returned.release("unused");
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 100 });
    expect(limiter.tryAcquire({ cost: 100 })).toBeDefined();
  });

  it("has all its room again once two starts are returned that the change has put into one group", async () => {
    const { clock, limiter } = keyRig({ window: "4096/1024ms" });
    await clock.advance(0.1);
    const permits = [granted(limiter.tryAcquire({ cost: 5 }))];
    await clock.advance(0.1);
    permits.push(granted(limiter.tryAcquire({ cost: 7 })));
    limiter.configure({ window: "5000/1024ms" });
    for (const permit of permits) permit.release("unused");
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 5_000 });
  });

  it("has all room again when starts of one instant come back, one from before the change and one from after it", async () => {
    const { clock, limiter } = keyRig({ window: "9000/10.24ms" });
    await clock.advance(0.001);
    const before = granted(limiter.tryAcquire({ cost: 9 }));
    limiter.configure({ window: "4096/10.24ms" });
    const after = granted(limiter.tryAcquire({ cost: 5 }));
    for (const permit of [before, after]) permit.release("unused");
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 4_096 });
  });

  it("is never over its count at a start, through any starts, returns and changes, and is empty in the end", () => {
    const periodMs = 10.24;
    const anyStep = fc.record({
      kind: fc.constantFrom("start", "start", "start", "return", "return", "change"),
      pauseUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 6_000 })),
      share: fc.constantFrom(0.001, 0.3, 0.5, 1),
      pick: fc.nat(),
    });
    const counts = [4_096, 5_000, 100, 9_000];
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
        const { clock, limiter } = keyRig({ window: `${counts[0]}/${periodMs}ms` });
        let [count] = counts;
        let open: { permit: ReturnType<typeof granted>; cost: number }[] = [];
        const made = new Set<(typeof open)[number]>();
        for (const { kind, pauseUs, share, pick } of steps) {
          clock.stall(pauseUs / 1000);
          if (kind === "change") {
            count = counts[pick % counts.length];
            limiter.configure({ window: `${count}/${periodMs}ms` });
          } else if (kind === "return" && open.length > 0) {
            const one = open[pick % open.length];
            one.permit.release("unused");
            open = open.filter((each) => each !== one);
            made.delete(one);
          } else if (kind === "start") {
            const cost = Math.ceil(share * count);
            const permit = limiter.tryAcquire({ cost });
            if (permit === undefined) continue;
            open.push({ permit, cost });
            made.add(open[open.length - 1]);
            const inside = [...made].filter((each) => exact(permit.startedAtMs - each.permit.startedAtMs) < periodMs);
            expect(inside.reduce((sum, each) => sum + each.cost, 0)).toBeLessThanOrEqual(count);
          }
        }
        for (const { permit } of open) permit.release("unused");
        expect(limiter.stats().window?.calls).toBe(0);
      }),
      seeded(150),
    );
  });
});

describe("a ladder that begins with no hold", () => {
  it("is climbed all the same: the second incident holds for the second step", async () => {
    const { clock, limiter, events } = keyRig({ cooldown: [0, "10s"] });
    await clock.advance(1_000);
    granted(limiter.tryAcquire()).release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(0);
    await clock.advance(1);
    granted(limiter.tryAcquire()).release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(10_000);
    expect(limiter.tryAcquire()).toBeUndefined();
    expect(only(events, "cooldown").map(({ step }) => step)).toEqual([1, 2]);
    await clock.advance(10_000);
    granted(limiter.tryAcquire()).release("success");
    await clock.advance(1);
    granted(limiter.tryAcquire()).release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(0);
  });
});

describe("a listener that is async", () => {
  it("and rejects causes no unhandled rejection, and others still hear", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const { clock, limiter, events } = rig({ default: { minDelay: "1s" } });
      // As a program without types, or with looser ones, may pass it.
      const failing: unknown = async () => {
        await Promise.resolve();
        throw new Error("the listener failed");
      };
      limiter.subscribe(failing as () => void);
      const waiting = [limiter.acquire("a.example"), limiter.acquire("a.example")];
      await clock.advance(1_000);
      for (const permit of await Promise.all(waiting)) permit.release("success");
      for (let turn = 0; turn < 3; turn += 1) await clock.settle();
      expect(unhandled).toEqual([]);
      expect(only(events, "release")).toHaveLength(2);
    } finally {
      process.off("unhandledRejection", note);
    }
  });
});
