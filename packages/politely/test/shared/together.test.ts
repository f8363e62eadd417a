import { describe, expect, it } from "vitest";
import { Fleet, leastGap, mostWithin } from "./fleet.js";

describe("limiters with one store", () => {
  it("keep one rate together, without waste and with few questions", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3].map(() => fleet.add({ rate: "2/s" }));
    const done = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 10)));
    await fleet.clock.advance(20_000);
    await done;
    const starts = fleet.startsUs();
    expect(starts).toHaveLength(30);
    expect(leastGap(starts)).toBe(500_000);
    expect(starts[29] - starts[0]).toBeLessThanOrEqual(29 * 500_000 + 300_000);
    expect(fleet.calls).toBeLessThanOrEqual(45);
  });

  it("keep an exact window together, in every interval", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4].map(() => fleet.add({ window: "20/s" }));
    const done = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 50)));
    await fleet.clock.advance(12_000);
    await done;
    const starts = fleet.startsUs();
    expect(starts).toHaveLength(200);
    expect(mostWithin(starts, 1_000_000)).toBe(20);
    expect(starts[199] - starts[0]).toBeLessThanOrEqual(9_300_000);
  });

  it("take a host and everything together in one step", async () => {
    const fleet = new Fleet();
    const policy = { default: { rate: "1/s" }, global: { window: "3/s" } } as const;
    const limiters = [1, 2].map(() => fleet.add(policy));
    const hosts = ["a.org", "b.org", "c.org", "d.org", "e.org"];
    const done = Promise.all(limiters.flatMap((limiter) => hosts.map((key) => fleet.demand(limiter, 4, { key }))));
    await fleet.clock.advance(40_000);
    await done;
    expect(mostWithin(fleet.startsUs(), 1_000_000)).toBeLessThanOrEqual(3);
    for (const key of hosts) {
      const own = fleet.starts.filter((start) => start.key === key).map(({ atMs }) => Math.round(atMs * 1000));
      expect(leastGap(own.sort((a, b) => a - b))).toBeGreaterThanOrEqual(1_000_000);
    }
  });

  it.each([
    ["a slow key", "1/2s", 2],
    ["a fast key", "100/s", 20],
  ] as const)("ask at most twice for each start with 50 processes at %s, and take turns", async (_, rate, each) => {
    const fleet = new Fleet();
    const limiters = Array.from({ length: 50 }, () => fleet.add({ rate }));
    const done = Promise.all(limiters.map((limiter) => fleet.demand(limiter, each)));
    await fleet.clock.runToEnd();
    await done;
    const starts = fleet.startsUs();
    expect(starts).toHaveLength(50 * each);
    expect(fleet.calls / starts.length).toBeLessThanOrEqual(2);
    const firstRound = new Set(fleet.starts.slice(0, 60).map(({ limiter }) => limiter));
    expect(firstRound.size).toBeGreaterThanOrEqual(45);
    const spanUs = starts[starts.length - 1] - starts[0];
    const ideal = (starts.length - 1) * (rate === "1/2s" ? 2_000_000 : 10_000);
    expect(ideal / spanUs).toBeGreaterThanOrEqual(0.98);
  });

  it("serve higher priorities first within a process", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/s" });
    const order: string[] = [];
    const ask = async (name: string, priority: number): Promise<void> => {
      const permit = await limiter.acquire("x.org", { priority });
      order.push(name);
      await permit.release();
    };
    const first = [ask("first", 0), ask("low", 0), ask("low too", 0)];
    await fleet.clock.advance(500);
    const late = ask("high", 5);
    await fleet.clock.advance(5_000);
    await Promise.all([...first, late]);
    expect(order).toEqual(["first", "high", "low", "low too"]);
  });

  it("give a cancelled head's start to the next, and count nothing for it", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/s" }), fleet.add({ rate: "1/s" })];
    await fleet.demandNow(one, 1);
    const controller = new AbortController();
    const cancelled = one.acquire("x.org", { signal: controller.signal }).catch((error: unknown) => error);
    await fleet.clock.advance(100);
    const next = fleet.demand(other, 1);
    await fleet.clock.advance(100);
    controller.abort(new Error("no longer wanted"));
    await fleet.clock.advance(3_000);
    await next;
    expect(await cancelled).toEqual(new Error("no longer wanted"));
    expect(fleet.starts).toHaveLength(2);
    expect(fleet.startsUs()[1]).toBeLessThanOrEqual(2_100_000);
  });

  it("refuse a wait that cannot be met, with how long it would take", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/min" });
    await fleet.demandNow(limiter, 1);
    const refused = limiter.acquire("x.org", { maxWait: "5s" }).catch((error: unknown) => error);
    await fleet.clock.advance(10);
    expect(await refused).toMatchObject({ code: "POLITELY_DEADLINE", reason: expect.stringContaining("rate 1/min") });
    const { waitMs } = (await refused) as { waitMs: number };
    expect(waitMs).toBeGreaterThan(59_000);
  });

  it("count a quota together on the calendar", async () => {
    const fleet = new Fleet();
    const policy = { quota: { count: 5, per: "day" } } as const;
    const limiters = [fleet.add(policy), fleet.add(policy)];
    const done = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 4)));
    await fleet.clock.advance(60_000);
    expect(fleet.starts).toHaveLength(5);
    await fleet.clock.advance(24 * 3_600_000);
    await done;
    expect(fleet.starts).toHaveLength(8);
  });

  it("share nothing under different names", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/s" }, { name: "a" }), fleet.add({ rate: "1/s" }, { name: "b" })];
    await fleet.now(Promise.all([fleet.demand(one, 1), fleet.demand(other, 1)]));
    const [first, second] = fleet.startsUs();
    expect(second - first).toBeLessThan(10_000);
  });

  it("balance their books", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s", maxQueue: 5 });
    const done = Promise.allSettled(Array.from({ length: 9 }, () => limiter.run("x.org", () => undefined)));
    await fleet.clock.advance(5_000);
    await done;
    const stats = await fleet.now(limiter.stats("x.org"));
    expect(stats?.asked).toBe(9);
    expect(stats?.granted).toBe((stats?.released ?? 0) + (stats?.inFlight ?? 0));
    expect((stats?.granted ?? 0) + (stats?.refused ?? 0)).toBe(9);
  });
});
