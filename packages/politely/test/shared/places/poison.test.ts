import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";
import { learn } from "./learn.js";

it("learns nothing wrong from places that a process took again after an outage", async () => {
  const fleet = new Fleet();
  await fleet.clock.advance(3_600_000);
  const [a, b] = [fleet.add({ concurrency: 30 }), fleet.add({ concurrency: 30 })];
  await learn(fleet, a, 400);
  fleet.mood = "refusing";
  const work = Promise.all(Array.from({ length: 30 }, () => a.acquire("x.org")));
  await fleet.clock.advance(5_000);
  const permits = await work;
  fleet.mood = "well";
  await fleet.clock.advance(5_000);
  // Their places are in the store by now. They go back after some seconds.
  await fleet.now(Promise.all(permits.map((permit) => permit.release("success"))));
  // Everything from here on is held for 400 ms, as before the outage.
  const again = fleet.demand(a, 30, { holdMs: 400 });
  await fleet.clock.advance(100);
  const atMs = fleet.clock.now();
  const next = b.acquire("x.org").then(() => fleet.clock.now() - atMs);
  await fleet.clock.advance(60_000);
  await again;
  const waitedMs = await next;
  expect(waitedMs).toBeLessThan(1_000);
});
