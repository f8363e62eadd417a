import { expect, it } from "vitest";
import { Fleet } from "./fleet.js";

it("starts everybody who can start in time, and refuses the others, however many wait together", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/4s" });
  const ends: (number | string)[] = [];
  for (let index = 0; index < 5; index++) {
    limiter.acquire("x.org", { maxWait: "10s" }).then(
      () => (ends[index] = Math.round(fleet.clock.now() / 1000)),
      (error: { code: string }) => (ends[index] = error.code),
    );
  }
  await fleet.clock.advance(20_000);
  expect(ends).toEqual([0, 4, 8, "POLITELY_DEADLINE", "POLITELY_DEADLINE"]);
});
