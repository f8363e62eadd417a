import { expect, it } from "vitest";
import type { SharedLimiter } from "../../../src/sharedTypes.js";
import { Fleet } from "../fleet.js";

it.each([
  ["a place held for 20 s", { concurrency: 1 }],
  ["a start each 20 s", { rate: "1/20s" }],
] as const)("uses %s though those who stood in line were killed", async (_what, limits) => {
  const fleet = new Fleet();
  const endless = async (limiter: SharedLimiter): Promise<void> => {
    for (;;) await fleet.demand(limiter, 1, { holdMs: "rate" in limits ? 10 : 20_000 });
  };
  const old = Array.from({ length: 30 }, () => fleet.add(limits));
  for (const limiter of old) void endless(limiter);
  await fleet.clock.advance(310_000);
  for (const limiter of old) fleet.kill(limiter);
  const beganMs = fleet.clock.now();
  const count = fleet.starts.length;
  const fresh = Array.from({ length: 4 }, () => fleet.add(limits));
  for (const limiter of fresh) void endless(limiter);
  await fleet.clock.advance(600_000);
  const starts = fleet.starts.slice(count).filter(({ limiter }) => limiter >= old.length);
  const each = fresh.map((_, index) => starts.filter(({ limiter }) => limiter === old.length + index).length);
  const atSec = starts.map(({ atMs }) => Math.round((atMs - beganMs) / 1_000));
  // Who stands in line has to come within two minutes; who has not is gone, and the others take turns.
  expect(atSec[0]).toBeLessThan(125);
  expect(Math.min(...each)).toBeGreaterThan(2);
});
