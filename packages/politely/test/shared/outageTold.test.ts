import { describe, expect, it } from "vitest";
import type { SharedLimiter, SharedOptions } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

/** A process, and what it warned of. */
function watched(fleet: Fleet, limits: object, options: Partial<SharedOptions>): [SharedLimiter, string[]] {
  const limiter = fleet.add(limits, options);
  const warnings: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "warn") warnings.push(event.message);
  });
  return [limiter, warnings];
}

/** The store is away while something is done, and then back. */
async function whileAway(fleet: Fleet, limiter: SharedLimiter, act: () => Promise<unknown>): Promise<void> {
  fleet.mood = "refusing";
  limiter.check("x.org").catch(() => undefined);
  await fleet.clock.advance(8_000);
  await act();
  fleet.mood = "well";
  await fleet.clock.advance(60_000);
}

async function startsAt(fleet: Fleet, limiter: SharedLimiter, key: string): Promise<number> {
  return (await fleet.now(limiter.stats(key, { fleet: true })))?.totalRequests ?? 0;
}

async function times(count: number, act: (number: number) => Promise<void>): Promise<void> {
  for (let number = 0; number < count; number++) await act(number);
}

describe("what was started while the store was away is told to it", () => {
  it("though 10,500 bad answers came meanwhile, and the next time too", async () => {
    const fleet = new Fleet();
    const [limiter, warnings] = watched(fleet, { window: "100000/d", backoff: "none" }, { outage: "open" });
    await whileAway(fleet, limiter, () => times(10_500, () => limiter.record("x.org", { status: 503 })));
    expect(await startsAt(fleet, limiter, "x.org")).toBe(10_500);
    await whileAway(fleet, limiter, () => times(5, () => limiter.record("x.org", "success")));
    expect(await startsAt(fleet, limiter, "x.org")).toBe(10_505);
    expect(warnings).toEqual([]);
  });

  it("with the longest time to stay away that a host asked for, though it asked for less later", async () => {
    const fleet = new Fleet();
    const [limiter] = watched(fleet, { window: "100/d" }, { outage: "open" });
    await whileAway(fleet, limiter, async () => {
      for (const seconds of ["600", "3", "2"])
        await limiter.record("x.org", { status: 429, headers: { "retry-after": seconds } });
    });
    const { causes } = await fleet.now(fleet.add({ window: "100/d" }).explain("x.org"));
    expect(causes[0]).toMatchObject({ limit: "cooldown" });
    expect(causes[0]?.waitMs).toBeGreaterThan(500_000);
  });

  it("while it hangs and comes back in between", async () => {
    const fleet = new Fleet();
    const [limiter] = watched(fleet, { window: "100/d" }, { outage: "open" });
    await whileAway(fleet, limiter, async () => {
      for (const mood of ["replies lost", "refusing", "silent", "refusing"] as const) {
        await limiter.record("x.org", "success");
        fleet.mood = mood;
        await fleet.clock.advance(9_000);
      }
    });
    expect(await startsAt(fleet, limiter, "x.org")).toBe(4);
  });
});
