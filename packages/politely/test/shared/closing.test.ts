import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

function warnings(limiter: SharedLimiter): string[] {
  const messages: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "warn") messages.push(event.message);
  });
  return messages;
}

describe("a limiter that is closed", () => {
  it("takes its policy along when nobody else is there, and what it started still counts", async () => {
    const fleet = new Fleet();
    const strict = fleet.add({ rate: "1/20s" });
    await fleet.demandNow(strict, 1);
    await fleet.now(strict.close());
    const loose = fleet.add({ rate: "1/s" });
    const messages = warnings(loose);
    const startedMs = fleet.starts[0].atMs;
    const work = fleet.demand(loose, 3);
    await fleet.clock.advance(4_000);
    await work;
    expect(messages).toEqual([]);
    // The debt is kept in units: one start under the new rate.
    expect(fleet.starts[1].atMs - startedMs).toBeGreaterThanOrEqual(1_000);
  });

  it("is no part of the fleet any more: the others keep larger shares while the store is away", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4].map(() => fleet.add({ window: "40/s" }));
    for (const limiter of limiters) await fleet.demandNow(limiter, 1);
    for (const limiter of limiters.slice(1)) await fleet.now(limiter.close());
    await fleet.clock.advance(31_000);
    await fleet.demandNow(limiters[0], 1);
    fleet.mood = "refusing";
    const before = fleet.starts.length;
    const work = fleet.demand(limiters[0], 80);
    await fleet.clock.advance(6_600);
    expect(fleet.starts.length - before).toBeGreaterThan(30);
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    await work;
  });

  it("ends at once while the store is away, and however many hosts it knows in bounded time", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    for (let host = 0; host < 300; host++) await fleet.now(fleet.demand(limiter, 1, { key: `h${host}.org` }));
    const { calls } = fleet;
    await fleet.now(limiter.close());
    expect(fleet.calls - calls).toBeLessThanOrEqual(256);
    const away = fleet.add({ rate: "10/s" });
    await fleet.demandNow(away, 1);
    fleet.mood = "refusing";
    await fleet.demandNow(away, 1);
    const atMs = fleet.clock.now();
    await fleet.now(away.close());
    expect(fleet.clock.now() - atMs).toBeLessThan(100);
  });
});
