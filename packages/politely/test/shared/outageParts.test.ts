import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FleetSize } from "../../src/scheduler/shared/fleetSize.js";
import { partOf } from "../../src/shared/ruleNumbers.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { keyOf, takeOf } from "../../src/testing/store/operations.js";
import { seeded } from "../laws/seeded.js";
import { Fleet, mostWithin } from "./fleet.js";

const second = 1_000_000;
const minute = 60 * second;

/** Starts one request after the other, for ever, and notes them. */
function hammer(fleet: Fleet, limiter: SharedLimiter, key: string, tasks: number): void {
  for (let task = 0; task < tasks; task++) {
    void (async () => {
      for (;;) await fleet.demand(limiter, 1, { key, holdMs: 1 });
    })();
  }
}

/** The most starts in any second, of all that were made after this instant. */
function mostAfter(fleet: Fleet, atMs: number): number {
  return mostWithin(
    fleet.startsUs().filter((startUs) => startUs > atMs * 1000),
    second - 2_000,
  );
}

describe("while the store is away, a limit is divided among all who share it", () => {
  it("when it is global, and every process has hosts of its own", async () => {
    const fleet = new Fleet();
    const policy = { default: { rate: "100/s", burst: 100 }, global: { window: "10/s" } } as const;
    const limiters = [1, 2, 3, 4, 5].map(() => fleet.add(policy));
    for (const [index, limiter] of limiters.entries()) hammer(fleet, limiter, `h${index}.org`, 5);
    await fleet.clock.advance(10_000);
    fleet.mood = "refusing";
    await fleet.clock.advance(10_000);
    expect(mostAfter(fleet, 0)).toBeGreaterThan(0);
    expect(mostAfter(fleet, 12_000)).toBeGreaterThan(0);
    expect(mostAfter(fleet, 12_000)).toBeLessThanOrEqual(10);
  });

  it("when it is that of a host nobody has met before, though the last answer was about a host of one process", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4, 5].map(() => fleet.add({ window: "10/s" }));
    for (const limiter of limiters) hammer(fleet, limiter, "x.org", 1);
    await fleet.clock.advance(5_000);
    for (const [index, limiter] of limiters.entries()) hammer(fleet, limiter, `own${index}.org`, 1);
    await fleet.clock.advance(20_000);
    fleet.mood = "refusing";
    await fleet.clock.advance(2_000);
    fleet.starts.length = 0;
    for (const limiter of limiters) hammer(fleet, limiter, "new.org", 12);
    await fleet.clock.advance(5_000);
    const starts = fleet.starts.filter(({ key }) => key === "new.org").map(({ atMs }) => atMs * 1000);
    expect(starts.length).toBeGreaterThan(0);
    expect(mostWithin(starts, second - 2_000)).toBeLessThanOrEqual(10);
  });

  it("and no longer by one that has closed, at global as at its host", async () => {
    const fleet = new Fleet();
    const policy = { default: { rate: "100/s", burst: 100 }, global: { window: "10/s" } } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    await fleet.now(fleet.demand(one, 1, { key: "a.org" }));
    await fleet.now(fleet.demand(other, 1, { key: "b.org" }));
    const count = async (): Promise<number> => {
      const asked = takeOf({ asker: "", sequence: 0 }, [keyOf({})], { member: "watcher" });
      return (await fleet.inner.transact(["global"], asked)).fleet - 1;
    };
    expect(await count()).toBe(2);
    await fleet.now(other.close());
    expect(await count()).toBe(1);
  });
});

describe("while the store is away, a request that costs more than this process's part", () => {
  it.each([
    [{ rate: "10/s", burst: 10 }, 5_000],
    [{ window: "20/s" }, 3_000],
    [{ window: "5/s" }, 10_000],
    [{ rate: "100/s", burst: 100, quota: { count: 20, per: "day" } }, 86_400_000],
  ] as const)("starts all the same, and again: %j", async (limits, againMs) => {
    const fleet = new Fleet();
    fleet.mood = "refusing";
    const limiter = fleet.add(limits);
    const started: number[] = [];
    for (const _ of [1, 2]) {
      void limiter.acquire("x.org", { cost: 5 }).then((permit) => {
        started.push(permit.startedAtMs);
        return permit.release();
      });
    }
    await fleet.clock.advance(againMs - 1_000);
    expect(started).toHaveLength(1);
    await fleet.clock.advance(2_000);
    expect(started).toHaveLength(2);
  });

  it("is not kept back for ever by the part that lighter ones of another lane have", async () => {
    const fleet = new Fleet();
    fleet.mood = "refusing";
    const limiter = fleet.add({ default: { window: "20/s" }, scopes: { "way:*": { rate: "1000/s", burst: 1000 } } });
    void (async () => {
      for (;;) await fleet.demand(limiter, 1, { key: "x.org", holdMs: 10_000 });
    })();
    await fleet.clock.advance(60_000);
    const heavy = limiter.acquire({ host: "x.org", scopes: ["way:1"] }, { cost: 5 });
    await fleet.clock.advance(60_000);
    expect((await heavy).startedAtMs).toBeLessThan(100_000);
  });
});

it("the part of a rule has room for the cost, and all parts together are no more than the whole in the long run", () => {
  const anyRule = fc.record({
    burst: fc.integer({ min: 1, max: 10_000 }),
    count: fc.integer({ min: 1, max: 10_000 }),
    quota: fc.integer({ min: 1, max: 10_000 }),
    perUs: fc.integer({ min: 1, max: 86_400 * second }),
    parts: fc.integer({ min: 1, max: 1_000 }),
    heavy: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(anyRule, ({ burst, count, quota, perUs, parts, heavy }) => {
      const { rule } = keyOf({ rateCount: 1, ratePerUs: perUs, burst, windows: [count, perUs, 1], quota });
      const of = (whole: number): number => Math.max(1, Math.floor(whole * heavy));
      const cost = { rate: of(burst), window: of(count), quota: of(quota) };
      const part = partOf(rule, parts, cost);
      const [own, ownPerUs] = part.windows;
      expect(part.burst).toBeGreaterThanOrEqual(cost.rate);
      expect(own).toBeGreaterThanOrEqual(cost.window);
      expect(part.quota).toBeGreaterThanOrEqual(cost.quota);
      expect(BigInt(own) * BigInt(parts) * BigInt(perUs)).toBeLessThanOrEqual(BigInt(count) * BigInt(ownPerUs));
      expect(part.ratePerUs).toBe(Math.min(perUs * parts, Math.floor(Number.MAX_SAFE_INTEGER / part.burst / 2)));
      if (cost.window <= Math.floor(count / parts)) expect(ownPerUs).toBe(perUs);
    }),
    seeded(300),
  );
});

describe("the size of a fleet", () => {
  it("is the most that was heard in the last five minutes, and forgotten after ten", () => {
    const size = new FleetSize();
    expect(size.most).toBe(0);
    size.hear(7, 0);
    size.hear(1, minute);
    expect(size.most).toBe(7);
    size.hear(2, 5 * minute);
    expect(size.most).toBe(7);
    size.hear(1, 10 * minute);
    expect(size.most).toBe(2);
    size.hear(1, 60 * minute);
    expect(size.most).toBe(1);
  });
});
