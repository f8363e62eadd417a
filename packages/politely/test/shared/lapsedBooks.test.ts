import { expect, it } from "vitest";
import { Fleet } from "./fleet.js";

it("books a permit that lost its place as lapsed, once, and a late release changes nothing", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ concurrency: 2, maxHold: "5s" });
  const permit = await fleet.now(limiter.acquire("x.org"));
  await fleet.clock.advance(10_000);
  await fleet.demandNow(limiter, 1);
  const books = { granted: 2, released: 1, lapsed: 1, inFlight: 0 };
  expect(await fleet.now(limiter.stats("x.org"))).toMatchObject(books);
  await fleet.now(permit.release("success"));
  expect(await fleet.now(limiter.stats("x.org"))).toMatchObject(books);
});
