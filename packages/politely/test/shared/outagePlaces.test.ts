import { describe, expect, it } from "vitest";
import type { SharedLimiter, SharedPermit } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

const policy = { concurrency: 1, permitTtl: "5s" } as const;

/** Asks for a start, and notes when it comes. */
function ask(limiter: SharedLimiter, key = "x.org"): { permit: SharedPermit | undefined } {
  const asked: { permit: SharedPermit | undefined } = { permit: undefined };
  limiter.acquire(key).then(
    (permit) => {
      asked.permit = permit;
    },
    () => undefined,
  );
  return asked;
}

/** The store is away for so long. */
async function outage(fleet: Fleet, ms: number, ...limiters: SharedLimiter[]): Promise<void> {
  fleet.mood = "refusing";
  for (const limiter of limiters) limiter.check("x.org").catch(() => undefined);
  await fleet.clock.advance(ms);
  fleet.mood = "well";
  await fleet.clock.advance(5_000);
}

describe("a task that runs over an outage longer than permitTtl", () => {
  it.each(["share", "closed", "open"] as const)("keeps its place from the process that runs it: %s", async (mode) => {
    const fleet = new Fleet();
    const limiter = fleet.add(policy, { outage: mode });
    const first = await fleet.now(limiter.acquire("x.org"));
    await outage(fleet, 20_000, limiter);
    const second = ask(limiter);
    await fleet.clock.advance(30_000);
    expect(second.permit).toBeUndefined();
    await fleet.now(first.release());
    await fleet.clock.advance(1_500);
    expect(second.permit).toBeDefined();
  });

  it("keeps it from other processes, since it is taken again before anything is asked", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add(policy, { outage: "closed" }), fleet.add(policy, { outage: "closed" })];
    const first = await fleet.now(one.acquire("x.org"));
    await outage(fleet, 20_000, one);
    const second = ask(other);
    await fleet.clock.advance(60_000);
    expect(second.permit).toBeUndefined();
    await fleet.now(first.release());
    await fleet.clock.advance(1_500);
    expect(second.permit).toBeDefined();
    expect((await fleet.now(one.stats("x.org", { fleet: true })))?.inFlight).toBe(1);
  });

  it("takes nothing but its place again: no unit, no gap, no start", async () => {
    const fleet = new Fleet();
    const limits = { concurrency: 3, window: "10/h", permitTtl: "5s" } as const;
    const limiter = fleet.add(limits, { outage: "closed" });
    const permits = await fleet.now(Promise.all([1, 2, 3].map(() => limiter.acquire("x.org"))));
    const before = await fleet.now(limiter.stats("x.org", { fleet: true }));
    await outage(fleet, 20_000, limiter);
    const after = await fleet.now(limiter.stats("x.org", { fleet: true }));
    expect(after).toMatchObject({ inFlight: 3, totalRequests: 3, window: { calls: 3, remaining: 7 } });
    expect(after?.lastRequestAt).toEqual(before?.lastRequestAt);
    await fleet.now(Promise.all(permits.map((permit) => permit.release("success"))));
    expect((await fleet.now(limiter.stats("x.org", { fleet: true })))?.inFlight).toBe(0);
    const next = [1, 2, 3, 4].map(() => ask(limiter));
    await fleet.clock.advance(2_000);
    expect(next.filter(({ permit }) => permit !== undefined)).toHaveLength(3);
  });

  it("has its place until maxHold and no longer", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ ...policy, maxHold: "60s" }, { outage: "closed" });
    await fleet.now(limiter.acquire("x.org"));
    await outage(fleet, 20_000, limiter);
    const second = ask(limiter);
    await fleet.clock.advance(30_000);
    expect(second.permit).toBeUndefined();
    await fleet.clock.advance(12_000);
    expect(second.permit).toBeDefined();
  });

  it("holds up no other host that shares a scope with it", async () => {
    const fleet = new Fleet();
    const whole = { default: { concurrency: 1, permitTtl: "5s" }, global: { concurrency: 4 } } as const;
    const limiter = fleet.add(whole, { outage: "closed" });
    const first = await fleet.now(limiter.acquire("x.org"));
    await outage(fleet, 20_000, limiter);
    const [same, another] = [ask(limiter), ask(limiter, "y.org")];
    await fleet.clock.advance(5_000);
    expect(same.permit).toBeUndefined();
    expect(another.permit).toBeDefined();
    await fleet.now(first.release());
  });
});

describe("a task that was started while the store was away", () => {
  it.each(["share", "open"] as const)("gets its place when the store is back: %s", async (mode) => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add(policy, { outage: mode }), fleet.add(policy, { outage: "closed" })];
    await fleet.now((await fleet.now(one.acquire("x.org"))).release());
    fleet.mood = "refusing";
    const first = ask(one);
    await fleet.clock.advance(5_000);
    expect(first.permit).toBeDefined();
    fleet.mood = "well";
    await fleet.clock.advance(5_000);
    const next = [ask(one), ask(other)];
    await fleet.clock.advance(30_000);
    expect(next.map(({ permit }) => permit)).toEqual([undefined, undefined]);
    await fleet.now(first.permit?.release() ?? Promise.resolve());
    await fleet.clock.advance(1_500);
    expect(next.filter(({ permit }) => permit !== undefined)).toHaveLength(1);
  });

  it("has it until maxHold and no longer, though nobody releases it", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ ...policy, maxHold: "60s" });
    fleet.mood = "refusing";
    const first = ask(limiter);
    await fleet.clock.advance(5_000);
    expect(first.permit).toBeDefined();
    fleet.mood = "well";
    const second = ask(limiter);
    await fleet.clock.advance(50_000);
    expect(second.permit).toBeUndefined();
    await fleet.clock.advance(12_000);
    expect(second.permit).toBeDefined();
  });
});

describe("a process that stood still for longer than permitTtl", () => {
  it("does not start another beside its task, though its question comes before its sign of life", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add(policy);
    const first = await fleet.now(limiter.acquire("x.org"));
    // Renewals get lost, and nobody notices: nothing else is asked.
    const { transact } = fleet.store;
    let isStill = true;
    Object.assign(fleet.store, {
      transact: (...asked: Parameters<typeof transact>) =>
        isStill && asked[1].kind === "renew" ? new Promise(() => undefined) : transact(...asked),
    });
    await fleet.clock.advance(5_500);
    isStill = false;
    const second = ask(limiter);
    await fleet.clock.advance(10_000);
    expect(second.permit).toBeUndefined();
    await fleet.now(first.release());
    await fleet.clock.advance(2_000);
    expect(second.permit).toBeDefined();
  });
});
