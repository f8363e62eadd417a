import { expect, it } from "vitest";
import { Fleet, mostWithin } from "./fleet.js";

it("processes that start together know of each other soon, and share the limit when the store goes", async () => {
  const fleet = new Fleet();
  const limiters = [1, 2, 3, 4].map(() => fleet.add({ window: "20/s" }));
  const work = limiters.map((limiter) => fleet.demand(limiter, 100));
  await fleet.clock.advance(1_100);
  fleet.mood = "refusing";
  await fleet.clock.advance(8_000);
  const awayUs = 1_100_000 + 6_000_000;
  const during = fleet.startsUs().filter((atUs) => atUs > awayUs);
  expect(during.length).toBeGreaterThan(0);
  expect(mostWithin(during, 1_000_000)).toBeLessThanOrEqual(20);
  fleet.mood = "well";
  await fleet.clock.advance(60_000);
  await Promise.all(work);
});
