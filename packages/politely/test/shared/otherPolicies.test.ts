import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

const fast: Limits = { rate: "1000/s", burst: 1_000 };
const strict: readonly (readonly [string, Limits, Limits])[] = [
  ["a window", { window: "20/h" }, fast],
  ["a bucket", { rate: "1/h", burst: 20 }, { window: "1000/s" }],
  ["a daily quota", { ...fast, quota: { count: 20, per: "day" } }, fast],
];

/** How many of twenty requests start within a second. */
async function used({ clock }: Fleet, limiter: SharedLimiter, count = 20): Promise<number> {
  let started = 0;
  for (let asked = 0; asked < count; asked++) {
    limiter.acquire("x.org").then(
      (permit) => {
        started += 1;
        return permit.release();
      },
      () => undefined,
    );
  }
  await clock.advance(1_000);
  void limiter.cancelWaiting();
  await clock.advance(100);
  return started;
}

describe.each(strict)("%s that is spent", (_title, own, other) => {
  it("stays spent while its process idles and one with other limits starts", async () => {
    const fleet = new Fleet();
    const [idle, busy] = [fleet.add(own), fleet.add(other)];
    expect(await used(fleet, idle)).toBe(20);
    await fleet.clock.advance(31_000);
    for (let round = 0; round < 3; round++) expect(await used(fleet, busy, 1)).toBe(1);
    expect(await used(fleet, idle)).toBe(0);
  });

  it("stays spent when the limit is taken away and put back", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add(own);
    expect(await used(fleet, limiter)).toBe(20);
    await fleet.now(limiter.configure({ default: other }));
    expect(await used(fleet, limiter, 1)).toBe(1);
    await fleet.now(limiter.configure({ default: own }));
    expect(await used(fleet, limiter)).toBe(0);
  });

  it("stays spent over a deployment without it that is rolled back", async () => {
    const fleet = new Fleet();
    const before = fleet.add(own);
    expect(await used(fleet, before)).toBe(20);
    await fleet.now(before.close());
    const without = fleet.add(other);
    expect(await used(fleet, without, 3)).toBe(3);
    await fleet.clock.advance(60_000);
    await fleet.now(without.close());
    expect(await used(fleet, fleet.add(own))).toBe(0);
  });
});

it("a burst that is changed to and fro leaves an empty bucket, and no worse", async () => {
  const fleet = new Fleet();
  const hourly: Limits = { rate: "1/h", permitTtl: "2s" };
  const limiter = fleet.add({ ...hourly, burst: 20 });
  expect(await used(fleet, limiter, 1)).toBe(1);
  for (let change = 0; change < 40; change++) {
    const burst = change % 2 === 0 ? 1 : 20;
    await fleet.now(limiter.configure({ default: { ...hourly, burst, minDelay: 1 + change } }));
    await used(fleet, limiter, 1);
    await fleet.clock.advance(2_000);
  }
  await fleet.clock.advance(3_600_000);
  expect(await used(fleet, limiter)).toBe(1);
});
