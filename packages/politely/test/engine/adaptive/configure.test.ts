import { expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";

it("a policy without adaptive takes the slowdown away with it", async () => {
  const clock = new VirtualClock();
  const polite = politely({ default: { rate: "10/s", adaptive: true, cooldown: 1, backoff: "none" } }, { clock });
  for (let index = 0; index < 4; index++) {
    const permit = polite.acquire("a.example");
    await clock.advance(60_000);
    (await permit).release("rate_limited");
  }
  await clock.advance(60_000);
  polite.tryAcquire("a.example")?.release("success");
  expect(polite.explain("a.example").causes.map(({ limit }) => limit)).toContain("adaptive");

  polite.configure({ default: { rate: "10/s", cooldown: 1, backoff: "none" } });
  await clock.advance(1_000);
  expect(polite.check("a.example").proceed).toBe(true);
  expect(polite.explain("a.example").causes).toEqual([]);
});
