import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Store } from "../../src/stores/store.js";
import type { Target } from "../../src/types.js";
import { Fleet } from "./fleet.js";

/** Starts one after the other, each held for a while, until `clock` is left alone. */
async function keepBusy(fleet: Fleet, limiter: SharedLimiter, target: Target, holdMs: number): Promise<void> {
  for (;;) {
    const permit = await limiter.acquire(target);
    if (holdMs > 0) await new Promise<void>((resolve) => fleet.clock.setTimer(fleet.clock.now() + holdMs, resolve));
    await permit.release();
  }
}

describe("a request with a cost", () => {
  it.each<[string, Limits, number, number]>([
    ["a bucket of 1/s and a burst of 5", { rate: "1/s", burst: 5 }, 5, 6_000],
    ["a window of 10 per 10 s", { window: "10/10s" }, 10, 11_000],
    ["a window of 5 per 5 s and a gap", { window: "5/5s", minDelay: 900 }, 5, 6_000],
  ])("is served in its turn at %s, however much another process starts", async (_title, limits, cost, mostMs) => {
    const fleet = new Fleet();
    const [heavy, light] = [fleet.add(limits), fleet.add(limits)];
    void keepBusy(fleet, light, "x.org", 0);
    await fleet.clock.advance(20_000);
    const beganMs = fleet.clock.now();
    let startedMs = Number.POSITIVE_INFINITY;
    void heavy.acquire("x.org", { cost }).then((permit) => {
      startedMs = permit.startedAtMs;
    });
    await fleet.clock.advance(60_000);
    expect(startedMs - beganMs).toBeLessThanOrEqual(mostMs);
  });

  it("is not overtaken by a try of another process", async () => {
    const fleet = new Fleet();
    const [heavy, light] = [fleet.add({ rate: "1/s", burst: 5 }), fleet.add({ rate: "1/s", burst: 5 })];
    await fleet.demandNow(heavy, 4);
    void heavy.acquire("x.org", { cost: 5 });
    await fleet.clock.advance(50);
    expect(await fleet.now(light.tryAcquire("x.org"))).toBe(undefined);
  });
});

it("who needs two scopes at once is served, though other processes keep each of them busy", async () => {
  const fleet = new Fleet();
  const policy = {
    default: { rate: "1000/s" as const, burst: 1_000 },
    scopes: { s1: { concurrency: 1 }, s2: { concurrency: 1 } },
  };
  const [both, first, second] = [fleet.add(policy), fleet.add(policy), fleet.add(policy)];
  for (let worker = 0; worker < 2; worker++) {
    void keepBusy(fleet, first, { host: "b.org", scopes: ["s1"] }, 100);
    void keepBusy(fleet, second, { host: "c.org", scopes: ["s2"] }, 100);
  }
  await fleet.clock.advance(5_000);
  const starts: number[] = [];
  void (async () => {
    for (;;) {
      const permit = await both.acquire({ host: "a.org", scopes: ["s1", "s2"] });
      starts.push(permit.waitedMs);
      await permit.release();
    }
  })();
  await fleet.clock.advance(60_000);
  expect(starts.length).toBeGreaterThanOrEqual(5);
  expect(Math.max(...starts)).toBeLessThan(11_500);
});

/** The fleet's store, further away. */
function farStore({ store, clock }: Fleet, wayMs: number): Store {
  const pass = (): Promise<void> => new Promise((resolve) => void clock.setTimer(clock.now() + wayMs, resolve));
  return {
    ...store,
    async transact(keys, operation) {
      await pass();
      const reply = await store.transact(keys, operation);
      await pass();
      return reply;
    },
  };
}

describe("a process whose way to the store is long", () => {
  it.each<[string, Limits, number]>([
    ["places", { concurrency: 4 }, 28],
    ["places, when it is very long", { concurrency: 4 }, 100],
    ["a window", { window: "20/s" }, 150],
  ])("is served in its turn at %s, however busy one nearby is", async (_title, limits, wayMs) => {
    const fleet = new Fleet();
    const near = fleet.add(limits);
    const far = fleet.add(limits, { store: farStore(fleet, wayMs) });
    const waits: number[] = [];
    for (let worker = 0; worker < 12; worker++) void keepBusy(fleet, near, "x.org", 70 + worker);
    void (async () => {
      for (;;) {
        const permit = await far.acquire("x.org");
        waits.push(permit.waitedMs);
        await permit.release();
      }
    })();
    await fleet.clock.advance(60_000);
    expect(waits.length).toBeGreaterThan(20);
    expect(Math.max(...waits)).toBeLessThan(5_000);
  });
});
