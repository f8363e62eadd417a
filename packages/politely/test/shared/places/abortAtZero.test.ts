import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";

it("rejects with the reason, and gives the start back, when it is aborted while the store is asked, with a maxWait of 0", async () => {
  const fleet = new Fleet({ roundTripMs: 1_000 });
  const limiter = fleet.add({ window: "1/h", concurrency: 1 });
  const stop = new AbortController();
  const asked = limiter.acquire("x.org", { maxWait: 0, signal: stop.signal }).then(() => "granted", String);
  await fleet.clock.advance(100);
  stop.abort("enough");
  await fleet.clock.advance(5_000);
  const said = await asked;
  expect(said).toBe("enough");
});
