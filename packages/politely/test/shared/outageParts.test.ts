import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet, mostWithin } from "./fleet.js";

const second = 1_000_000;

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
    await fleet.clock.advance(20_000);
    expect(mostAfter(fleet, 0)).toBeGreaterThan(0);
    expect(mostAfter(fleet, 18_000)).toBeGreaterThan(0);
    expect(mostAfter(fleet, 18_000)).toBeLessThanOrEqual(10);
  });

  it("when it is that of a host nobody has met before, though the last answer was about a host of one process", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4, 5].map(() => fleet.add({ window: "10/s" }));
    for (const limiter of limiters) hammer(fleet, limiter, "x.org", 1);
    await fleet.clock.advance(5_000);
    for (const [index, limiter] of limiters.entries()) hammer(fleet, limiter, `own${index}.org`, 1);
    await fleet.clock.advance(20_000);
    fleet.mood = "refusing";
    await fleet.clock.advance(8_000);
    fleet.starts.length = 0;
    for (const limiter of limiters) hammer(fleet, limiter, "new.org", 12);
    await fleet.clock.advance(5_000);
    const starts = fleet.starts.filter(({ key }) => key === "new.org").map(({ atMs }) => atMs * 1000);
    expect(starts.length).toBeGreaterThan(0);
    expect(mostWithin(starts, second - 2_000)).toBeLessThanOrEqual(10);
  });
});

it("while the store is away, a request that costs more than this process's part waits until it is back", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ window: "20/s" });
  fleet.mood = "refusing";
  let startedMs = 0;
  void limiter.acquire("x.org", { cost: 5 }).then(() => (startedMs = fleet.clock.now()));
  await fleet.clock.advance(60_000);
  expect(startedMs).toBe(0);
  fleet.mood = "well";
  await fleet.clock.advance(10_000);
  expect(startedMs).toBeGreaterThan(60_000);
});
