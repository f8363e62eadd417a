import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { SharedLimiter, SharedPermit } from "../../src/sharedTypes.js";
import type { Operation } from "../../src/stores/operations.js";
import type { Store } from "../../src/stores/store.js";
import { Fleet } from "./fleet.js";

/** What becomes of an operation: it goes through, its reply is lost, or it never arrives. */
type Fate = "well" | "reply lost" | "refused";

/** The way of one process to the fleet's store. */
function wayOf(fleet: Fleet, fateOf: (operation: Operation) => Fate): Store {
  return {
    name: "virtual",
    timeline: "machine",
    transact: async (keys, operation) => {
      const fate = fateOf(operation);
      if (fate === "refused") throw new StoreError("virtual: connection refused");
      const reply = await fleet.store.transact(keys, operation);
      if (fate === "reply lost") throw new StoreError("virtual: connection dropped");
      return reply;
    },
  };
}

/** Asks for so many starts and gives those that came within two seconds. */
async function grab(fleet: Fleet, limiter: SharedLimiter, count: number): Promise<SharedPermit[]> {
  const permits: SharedPermit[] = [];
  for (let number = 0; number < count; number++) {
    void limiter.acquire("x.org", { maxWait: "2s" }).then(
      (permit) => permits.push(permit),
      () => 0,
    );
  }
  await fleet.clock.advance(3_000);
  return permits;
}

describe("when replies get lost", () => {
  it("1,200 starts that come back at once are given back no more than once", async () => {
    const fleet = new Fleet();
    const policy = { window: "2400/min" } as const;
    const seen = new Set<string>();
    let isLosing = false;
    const store = wayOf(fleet, (operation) => {
      if (!isLosing || operation.kind !== "settle") return "well";
      const name = `${operation.asker} ${operation.number}`;
      const isFirst = !seen.has(name);
      seen.add(name);
      return isFirst ? "reply lost" : "well";
    });
    const [one, other] = [fleet.add(policy), fleet.add(policy, { store })];
    const held = await grab(fleet, other, 1_200);
    const used = await grab(fleet, one, 1_200);
    expect([held.length, used.length]).toEqual([1_200, 1_200]);
    isLosing = true;
    void Promise.all(held.map((permit) => permit.release("unused")));
    await fleet.clock.advance(2_000);
    const more = await grab(fleet, one, 2_400);
    expect(seen.size).toBe(1_200);
    expect(used.length + more.length).toBeLessThanOrEqual(2_400);
    expect(more.length).toBeGreaterThan(900);
  });

  it("a reset is carried out once", async () => {
    const fleet = new Fleet();
    const policy = { window: "10/min" } as const;
    let left = 1;
    const store = wayOf(fleet, ({ kind }) => (kind === "record" && left-- > 0 ? "reply lost" : "well"));
    const [one, other] = [fleet.add(policy), fleet.add(policy, { store })];
    expect(await grab(fleet, one, 10)).toHaveLength(10);
    const reset = other.reset("x.org");
    await fleet.clock.advance(30);
    expect(await fleet.now(one.tryAcquire("x.org"))).toBeDefined();
    await fleet.now(reset);
    expect(await grab(fleet, one, 15)).toHaveLength(9);
  });

  it.each(["closed", "share"] as const)(
    "a question that nobody asks any more keeps no place in line, outage %s",
    async (outage) => {
      const fleet = new Fleet();
      const policy = { minDelay: "60s" } as const;
      let fate: Fate = "well";
      const store = wayOf(fleet, () => fate);
      const [one, other] = [fleet.add(policy), fleet.add(policy, { store, outage })];
      await fleet.demandNow(one, 1);
      const startedMs = fleet.starts[0].atMs;
      fate = "reply lost";
      const refused = other.acquire("x.org", { maxWait: "90s" }).catch((error: unknown) => error);
      await fleet.clock.advance(200);
      fate = "refused";
      await fleet.now(other.cancelWaiting());
      expect(await refused).toBeDefined();
      fate = "well";
      await fleet.clock.advance(5_000);
      void fleet.demand(one, 1);
      await fleet.clock.advance(100_000);
      expect(fleet.starts[1].atMs - startedMs).toBeLessThan(61_000);
    },
  );

  it("what is told late counts as of when it was", async () => {
    const fleet = new Fleet();
    const policy = { window: "1/h" } as const;
    let isDeaf = true;
    const store = wayOf(fleet, ({ kind }) => (isDeaf && kind === "record" ? "refused" : "well"));
    const [one, other] = [fleet.add(policy), fleet.add(policy, { store })];
    await fleet.now(other.record("x.org", "success"));
    await fleet.clock.advance(1_800_000);
    isDeaf = false;
    await fleet.clock.advance(10_000);
    void fleet.demand(one, 1);
    await fleet.clock.advance(7_200_000);
    expect(fleet.starts[0].atMs).toBeGreaterThanOrEqual(3_600_000);
    expect(fleet.starts[0].atMs).toBeLessThan(3_610_000);
  });
});

it("a place is renewed a few times a second at most, however short permitTtl is", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ concurrency: 1, permitTtl: 1 });
  const permit = await fleet.now(limiter.acquire("x.org"));
  fleet.calls = 0;
  await fleet.clock.advance(10_000);
  expect(fleet.calls).toBeLessThan(40);
  expect(await fleet.now(fleet.add({ concurrency: 1, permitTtl: 1 }).tryAcquire("x.org"))).toBeUndefined();
  await fleet.now(permit.release());
});
