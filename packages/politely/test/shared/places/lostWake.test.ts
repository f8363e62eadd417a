import { expect, it } from "vitest";
import type { Store } from "../../../src/stores/store.js";
import { Fleet } from "../fleet.js";
import { learn } from "./learn.js";

it("uses a place that it gave back itself though a question was under way meanwhile", async () => {
  const fleet = new Fleet();
  const later = (ms: number) =>
    new Promise<void>((resolve) => {
      fleet.clock.setTimer(fleet.clock.now() + ms, () => resolve());
    });
  // Answers to questions for starts take 40 ms longer on their way back than others: another connection of a pool.
  const store: Store = {
    ...fleet.store,
    async transact(keys, operation) {
      const reply = await fleet.store.transact(keys, operation);
      if (operation.kind === "take") await later(40);
      return reply;
    },
  };
  const policy = { default: { rate: "1000/s", burst: 10 }, global: { concurrency: 1 } } as const;
  const limiter = fleet.add(policy, { store });
  await learn(fleet, limiter, 20_000, { key: "a.org" });
  const two = await fleet.now(limiter.acquire("a.org"));
  await fleet.clock.advance(1_000);
  const atMs = fleet.clock.now();
  const three = limiter.acquire("b.org").then(() => fleet.clock.now() - atMs);
  await fleet.clock.advance(2);
  void two.release("success");
  await fleet.clock.advance(60_000);
  const waitedMs = await three;
  expect(waitedMs).toBeLessThan(1_000);
});
