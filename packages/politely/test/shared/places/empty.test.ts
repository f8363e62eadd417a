import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";
import { hold, learn, pass } from "./learn.js";

it("does not leave a place empty for long after one first answer of 30 s", async () => {
  const fleet = new Fleet();
  const limiters = Array.from({ length: 6 }, () => fleet.add({ concurrency: 1 }));
  const starts: number[] = [];
  const work = limiters.map(async (limiter, index) => {
    await pass(fleet, index * 10 + 1);
    starts.push(await hold(fleet, limiter, index === 0 ? 30_000 : 100));
  });
  await fleet.clock.advance(60_000 * 10);
  await Promise.all(work);
  // Five answers of 0.1 s, each found within a second.
  expect(Math.max(...starts)).toBeLessThan(30_000 + 5 * 1_100);
});

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

it("does not leave a place empty when the one who is next gives up", async () => {
  const fleet = new Fleet();
  const [a, b, c] = [1, 2, 3].map(() => fleet.add({ concurrency: 1 }));
  await learn(fleet, a, 20_000, { holds: 1 });
  const atMs = fleet.clock.now();
  const again = hold(fleet, a, 20_000);
  await fleet.clock.advance(100);
  const stop = new AbortController();
  const next = hold(fleet, b, 10, stop.signal).catch(() => undefined);
  await fleet.clock.advance(100);
  const last = hold(fleet, c, 10);
  await fleet.clock.advance(5_000);
  stop.abort();
  await fleet.clock.advance(120_000);
  await Promise.all([again, next]);
  const startedMs = (await last) - atMs;
  expect(startedMs).toBeLessThan(21_500);
});

it.each([1, 16])("does not leave a place empty when the next two in line are killed, after %i holds", async (holds) => {
  const fleet = new Fleet();
  const [a, b, c, d] = [1, 2, 3, 4].map(() => fleet.add({ concurrency: 1 }));
  await learn(fleet, a, 20_000, { holds });
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

it("takes turns at a place though holds vary", async () => {
  const fleet = new Fleet();
  const limiters = Array.from({ length: 4 }, () => fleet.add({ concurrency: 1 }));
  let seed = 7;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const counts = limiters.map(() => 0);
  let isOver = false;
  limiters.forEach((limiter, index) => {
    for (let each = 0; each < 3; each++) {
      void (async () => {
        while (!isOver) {
          const permit = await limiter.acquire("x.org");
          counts[index] += 1;
          await pass(fleet, 1_000 + 4_000 * random());
          await permit.release("success");
        }
      })();
    }
  });
  await fleet.clock.advance(600_000);
  isOver = true;
  expect(Math.max(...counts)).toBeLessThanOrEqual(1.5 * Math.min(...counts));
});
