import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

const dayMs = 86_400_000;

/** Makes requests, and lets so much time pass. Those that have not started by then wait on. */
async function press(fleet: Fleet, limiter: SharedLimiter, count: number, ms = 20_000): Promise<void> {
  fleet.demand(limiter, count).catch(() => undefined);
  await fleet.clock.advance(ms);
}

/** Asks, and records a start by hand whenever that is allowed. Returns how often it was. */
async function byHand(fleet: Fleet, limiter: SharedLimiter, times: number): Promise<number> {
  let allowed = 0;
  for (let time = 0; time < times; time++) {
    if (!(await fleet.now(limiter.check("x.org"))).proceed) continue;
    allowed += 1;
    await fleet.now(limiter.record("x.org", "success"));
  }
  return allowed;
}

describe("a store that goes away forgives nothing, however much was started", () => {
  it("thousands of starts in a window", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "3000/h" });
    await press(fleet, limiter, 3_000);
    expect(fleet.starts).toHaveLength(3_000);
    fleet.mood = "refusing";
    await press(fleet, limiter, 2_000);
    expect(fleet.starts).toHaveLength(3_000);
  });

  it("thousands of starts, each with an answer and a cost of its own", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "6000/h" });
    for (let number = 0; number < 2_400; number++) {
      const permit = limiter.acquire("x.org", { cost: 2 + (number % 2) });
      await fleet.clock.advance(2);
      await (await permit).release("success");
    }
    fleet.mood = "refusing";
    await press(fleet, limiter, 10);
    expect(fleet.starts).toHaveLength(0);
  }, 20_000);

  it("a quota", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ quota: { count: 3_000, per: "day" } });
    await press(fleet, limiter, 2_900);
    fleet.mood = "refusing";
    await press(fleet, limiter, 1_000);
    expect(fleet.starts).toHaveLength(3_000);
  });

  it("starts that were recorded by hand", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "5/h" });
    await press(fleet, limiter, 1);
    for (let time = 0; time < 4; time++) await fleet.now(limiter.record("x.org", "success"));
    fleet.mood = "refusing";
    await press(fleet, limiter, 3);
    expect(fleet.starts).toHaveLength(1);
  });
});

describe("what is over is forgiven", () => {
  it("the quota of yesterday", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ quota: { count: 30, per: "day" } });
    await press(fleet, limiter, 30);
    await fleet.clock.advance(dayMs);
    await press(fleet, limiter, 10);
    fleet.mood = "refusing";
    await press(fleet, limiter, 30);
    expect(fleet.starts).toHaveLength(30 + 30);
  });

  it("the quota of yesterday's outage, once the store is back", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ quota: { count: 30, per: "day" } });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await press(fleet, limiter, 29);
    expect(fleet.starts).toHaveLength(30);
    await fleet.clock.advance(dayMs);
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    await press(fleet, limiter, 40);
    expect(fleet.starts).toHaveLength(30 + 30);
  });

  it("a rate that was used for long beyond the share of one process", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4].map(() => fleet.add({ rate: "8/s" }));
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    await fleet.clock.advance(31_000);
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    await press(fleet, limiters[0], 400, 60_000);
    fleet.mood = "refusing";
    const before = fleet.starts.length;
    await press(fleet, limiters[0], 40, 20_000);
    // Two a second, once the last burst is paid for.
    expect(fleet.starts.length - before).toBeGreaterThan(20);
  });
});

describe("a store that is back hears of all that was started meanwhile", () => {
  it("thousands of starts", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "3000/h" });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await press(fleet, limiter, 4_000);
    expect(fleet.starts).toHaveLength(3_000);
    fleet.mood = "well";
    await fleet.clock.advance(20_000);
    expect(fleet.starts).toHaveLength(3_000);
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 3_000, remaining: 0 });
  });

  it("starts at a key that the policy names no more", async () => {
    const fleet = new Fleet();
    const policy = { default: { window: "10/h" } } as const;
    const limiter = fleet.add({ ...policy, global: { window: "20/h" } });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await press(fleet, limiter, 3);
    await fleet.now(limiter.configure(policy));
    fleet.mood = "well";
    await fleet.clock.advance(20_000);
    await press(fleet, fleet.add(policy), 10);
    expect(fleet.starts).toHaveLength(10);
    expect((await fleet.now(limiter.check("x.org"))).proceed).toBe(false);
  });

  it("starts of many costs", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "100000/h" }, { outage: "open" });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    let units = 1;
    for (let cost = 1; cost <= 300; cost++) {
      units += cost;
      const permit = limiter.acquire("x.org", { cost });
      await fleet.clock.advance(cost === 1 ? 10_000 : 10);
      await (await permit).release("success");
    }
    fleet.mood = "well";
    const { calls } = fleet;
    await fleet.clock.advance(20_000);
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: units });
    expect(fleet.calls - calls).toBeLessThan(20);
  });

  it("starts that were recorded by hand, more than can be kept one by one", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "50000/h" });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await fleet.now(limiter.check("x.org").catch(() => undefined));
    await fleet.clock.advance(5_000);
    await Promise.all(Array.from({ length: 12_000 }, () => limiter.record("x.org", "success")));
    fleet.mood = "well";
    await fleet.clock.advance(20_000);
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 12_001 });
  });
});

describe("asking, sending and recording by hand while the store is away", () => {
  it("keeps the share", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "5/h" });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await fleet.clock.advance(1_000);
    expect(await byHand(fleet, limiter, 20)).toBe(4);
  });

  it("keeps it when the store goes during the record", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "5/h" });
    await press(fleet, limiter, 1);
    const recorded = limiter.record("x.org", "success");
    fleet.mood = "silent";
    await fleet.clock.advance(10_000);
    await recorded;
    expect(await byHand(fleet, limiter, 20)).toBe(3);
    fleet.mood = "well";
    await fleet.clock.advance(20_000);
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 5, remaining: 0 });
  });

  it("holds requests that are made in the same process", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "5/h" });
    await press(fleet, limiter, 1);
    fleet.mood = "refusing";
    await byHand(fleet, limiter, 2);
    await press(fleet, limiter, 10);
    expect(fleet.starts).toHaveLength(3);
  });
});
