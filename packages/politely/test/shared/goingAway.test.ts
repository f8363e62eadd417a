import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/index.js";
import { Fleet, leastGap, mostWithin } from "./fleet.js";

/** One process that knows it is alone, and whose share is therefore the whole limit. */
async function lone(limits: Limits): Promise<{ fleet: Fleet; limiter: ReturnType<Fleet["add"]> }> {
  const fleet = new Fleet();
  const limiter = fleet.add(limits);
  return { fleet, limiter };
}

describe("a store that goes away", () => {
  it.each([
    ["a window", 4, { window: "4/10s" }],
    ["a rate", 2, { rate: "1/2s", burst: 2 }],
    ["a gap", 1, { minDelay: "3s" }],
  ] as const)("leaves what this process has started counted: %s holds across", async (_, count, limits) => {
    const { fleet, limiter } = await lone(limits);
    await fleet.demandNow(limiter, count);
    fleet.mood = "refusing";
    const later = fleet.demand(limiter, 8);
    await fleet.clock.advance(60_000);
    await later;
    const starts = fleet.startsUs();
    if ("window" in limits) expect(mostWithin(starts, 10_000_000)).toBe(4);
    if ("rate" in limits) expect(mostWithin(starts, 2_000_000)).toBeLessThanOrEqual(2);
    if ("minDelay" in limits) expect(leastGap(starts)).toBeGreaterThanOrEqual(3_000_000);
  });

  it("leaves a cooldown standing that this process reported", async () => {
    const { fleet, limiter } = await lone({ rate: "10/s" });
    const permit = await fleet.now(limiter.acquire("x.org"));
    await fleet.now(permit.release({ status: 429, headers: { "retry-after": "20" } }));
    const work = fleet.demand(limiter, 1);
    fleet.mood = "refusing";
    await fleet.clock.advance(18_000);
    expect(fleet.starts).toEqual([]);
    await fleet.clock.advance(10_000);
    await work;
  });

  it("leaves a cooldown standing that this process heard of when it asked", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    const permit = await fleet.now(one.acquire("x.org"));
    await fleet.now(permit.release({ status: 429, headers: { "retry-after": "20" } }));
    const refused = other.acquire("x.org", { maxWait: "1s" }).catch(() => undefined);
    await fleet.clock.advance(1_000);
    await refused;
    fleet.mood = "refusing";
    const work = fleet.demand(other, 1);
    await fleet.clock.advance(17_000);
    expect(fleet.starts).toEqual([]);
    await fleet.clock.advance(20_000);
    await work;
  });

  it("leaves those in flight counted", async () => {
    const { fleet, limiter } = await lone({ concurrency: 1, maxHold: "10min" });
    const held = await fleet.now(limiter.acquire("x.org"));
    const next = fleet.demand(limiter, 1);
    await fleet.clock.advance(1_000);
    fleet.mood = "refusing";
    await fleet.clock.advance(60_000);
    expect(fleet.starts).toEqual([]);
    await fleet.now(held.release());
    await fleet.clock.advance(1_000);
    await next;
    expect(fleet.starts).toHaveLength(1);
  });
});

describe("a store whose replies are lost", () => {
  it("takes back a start once, however often it is told", async () => {
    const { fleet, limiter } = await lone({ window: "4/h" });
    const three = [1, 2, 3].map(() => limiter.acquire("x.org"));
    const [first, used, unused] = await fleet.now(Promise.all(three));
    await first.release("success");
    expect(used.startedAtMs).toBe(unused.startedAtMs);
    await fleet.now(used.release("success"));
    fleet.mood = "replies lost";
    const released = unused.release("unused");
    await fleet.clock.advance(6_000);
    fleet.mood = "well";
    await fleet.clock.advance(6_000);
    await released;
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 2, remaining: 2 });
  });

  it("counts what was started without it once, however often it is told", async () => {
    const { fleet, limiter } = await lone({ window: "9/h" });
    await fleet.demandNow(limiter, 1);
    fleet.mood = "refusing";
    const work = fleet.demand(limiter, 2);
    await fleet.clock.advance(8_000);
    await work;
    fleet.mood = "replies lost";
    await fleet.clock.advance(20_000);
    fleet.mood = "well";
    await fleet.clock.advance(20_000);
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 3, remaining: 6 });
  });
});
