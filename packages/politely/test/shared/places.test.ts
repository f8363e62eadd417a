import { describe, expect, it } from "vitest";
import type { LimiterEvent } from "../../src/observe/types.js";
import { Fleet } from "./fleet.js";

describe("places of a limiter with a store", () => {
  it("are never more than the concurrency, in all processes together", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3].map(() => fleet.add({ concurrency: 2 }));
    let inFlight = 0;
    let most = 0;
    const task = async (): Promise<void> => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise((resolve) => fleet.clock.setTimer(fleet.clock.now() + 100, () => resolve(undefined)));
      inFlight -= 1;
    };
    const work = Promise.all(
      limiters.flatMap((limiter) => Array.from({ length: 5 }, () => limiter.run("x.org", task))),
    );
    await fleet.clock.advance(10_000);
    await work;
    expect(most).toBe(2);
  });

  it("are kept while the process lives, far beyond their lifetime", async () => {
    const fleet = new Fleet();
    const policy = { concurrency: 1, permitTtl: "3s" } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    const permit = await fleet.now(one.acquire("x.org"));
    const waiting = fleet.demand(other, 1);
    await fleet.clock.advance(60_000);
    expect(fleet.starts).toHaveLength(0);
    await fleet.now(permit.release("success"));
    await fleet.clock.advance(2_000);
    await waiting;
    expect(fleet.starts).toHaveLength(1);
  });

  it("come back within one lifetime when the process is gone, and its late release frees nobody else's", async () => {
    const fleet = new Fleet();
    const policy = { concurrency: 1, permitTtl: "3s" } as const;
    const one = fleet.add(policy);
    const other = fleet.add(policy);
    const permit = await fleet.now(one.acquire("x.org"));
    fleet.kill(one);
    const second = other.acquire("x.org");
    await fleet.clock.advance(3_300);
    const held = await second;
    await fleet.now(permit.release("success"));
    expect(await fleet.now(other.tryAcquire("x.org"))).toBeUndefined();
    await fleet.now(held.release());
    expect(await fleet.now(other.tryAcquire("x.org"))).toBeDefined();
  });

  it("come back at maxHold, and the holder is told", async () => {
    const fleet = new Fleet();
    const policy = { concurrency: 1, permitTtl: "2s", maxHold: "10s" } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    const events: LimiterEvent[] = [];
    one.subscribe((event) => events.push(event));
    await fleet.now(one.acquire("x.org"));
    const waiting = fleet.demand(other, 1);
    await fleet.clock.advance(12_000);
    await waiting;
    expect(fleet.starts[0].atMs).toBeGreaterThanOrEqual(10_000);
    expect(events.some((event) => event.type === "expire" && event.what === "permit")).toBe(true);
  });

  it("leave no timer behind when all are released", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ concurrency: 3 });
    const permits = await fleet.now(Promise.all([1, 2, 3].map(() => limiter.acquire("x.org"))));
    await fleet.now(Promise.all(permits.map((permit) => permit.release())));
    expect(fleet.clock.pendingTimers).toBe(0);
  });

  it("go back when the permit is disposed of", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ concurrency: 1 });
    const permit = await fleet.now(limiter.acquire("x.org"));
    await fleet.now(Promise.resolve(permit[Symbol.asyncDispose]()));
    expect(await fleet.now(limiter.tryAcquire("x.org"))).toBeDefined();
  });

  it("asks once a second at most while this process holds all of them, and uses them without a pause", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ concurrency: 1 });
    const done = fleet.demand(limiter, 10, { holdMs: 2_000 });
    await fleet.clock.advance(20_500);
    await done;
    // Each start costs a question, a release, and looks and renewals once in a while.
    expect(fleet.calls).toBeLessThanOrEqual(10 * 2 + 25);
  });

  it("looks for places of other processes no more often than every 10 ms, with one line for all who wait", async () => {
    const fleet = new Fleet({ roundTripMs: 0.3 });
    const limiters = Array.from({ length: 8 }, () => fleet.add({ concurrency: 1 }));
    const done = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 3, { holdMs: 500 })));
    await fleet.clock.advance(16_000);
    await done;
    expect(fleet.calls / fleet.clock.now()).toBeLessThan(0.11);
  });
});
