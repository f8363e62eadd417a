import { expect, it } from "vitest";
import type { SharedLimiter } from "../../../src/sharedTypes.js";
import { Fleet } from "../fleet.js";
import { learn, pass } from "./learn.js";

/** Uses one place for so long and says when it got it. */
async function hold(fleet: Fleet, limiter: SharedLimiter, ms: number): Promise<number> {
  const permit = await limiter.acquire("x.org");
  const atMs = fleet.clock.now();
  await pass(fleet, ms);
  await permit.release("success");
  return atMs;
}

it("does not leave a place empty for long when holds of 30 s are followed by short ones", async () => {
  const fleet = new Fleet();
  const limiters = Array.from({ length: 6 }, () => fleet.add({ concurrency: 1 }));
  await learn(fleet, limiters[0], 30_000);
  const atMs = fleet.clock.now();
  const starts: number[] = [];
  const work = limiters.map(async (limiter, index) => {
    await pass(fleet, index * 10 + 1);
    starts.push((await hold(fleet, limiter, 100)) - atMs);
  });
  await fleet.clock.advance(60_000 * 10);
  await Promise.all(work);
  expect(Math.max(...starts)).toBeLessThan(5 * 1_100);
});

it("does not leave a place empty when the next two in line are killed", async () => {
  const fleet = new Fleet();
  const [a, b, c, d] = [1, 2, 3, 4].map(() => fleet.add({ concurrency: 1 }));
  await learn(fleet, a, 20_000);
  const atMs = fleet.clock.now();
  const again = hold(fleet, a, 20_000);
  await fleet.clock.advance(100);
  void hold(fleet, b, 10);
  await fleet.clock.advance(100);
  void hold(fleet, c, 10);
  await fleet.clock.advance(100);
  const last = hold(fleet, d, 10);
  await fleet.clock.advance(5_000);
  fleet.kill(b);
  fleet.kill(c);
  await fleet.clock.advance(200_000);
  await again;
  const startedMs = (await last) - atMs;
  expect(startedMs).toBeLessThan(22_500);
});
