import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

const leaseMs = 30_000;
/** Whoever waits asks again at least this often. */
const askAgainMs = 120_000;

/** Lets time pass until there are so many starts; how long that took. */
async function untilStarts(fleet: Fleet, count: number): Promise<number> {
  const sinceMs = fleet.clock.now();
  for (let step = 0; step < 10_000 && fleet.starts.length < count; step++) await fleet.clock.advance(1_000);
  expect(fleet.starts).toHaveLength(count);
  return fleet.clock.now() - sinceMs;
}

/** Somebody waits, and nobody hears how it ends. */
function wait(fleet: Fleet, limiter: SharedLimiter): void {
  fleet.demand(limiter, 1).catch(() => undefined);
}

describe("a looser policy reaches those who wait", () => {
  it("at once when the only process is configured anew", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/h" });
    await fleet.demandNow(limiter, 1);
    wait(fleet, limiter);
    await fleet.clock.advance(100);
    await limiter.configure({ default: { rate: "100/s" } });
    expect(await untilStarts(fleet, 2)).toBeLessThanOrEqual(2_000);
  });

  it.each([
    ["has closed", true, false],
    ["has closed, and had a waiter", true, true],
    ["was killed, and had a waiter", false, true],
  ])("within two minutes and one lifetime after the stricter process %s", async (_what, isClosed, hasWaiter) => {
    const fleet = new Fleet();
    const [strict, loose] = [fleet.add({ window: "1/d" }), fleet.add({ rate: "100/s" })];
    await fleet.demandNow(strict, 1);
    if (hasWaiter) wait(fleet, strict);
    wait(fleet, loose);
    await fleet.clock.advance(100);
    if (isClosed) await fleet.now(strict.close());
    else fleet.kill(strict);
    expect(await untilStarts(fleet, 2)).toBeLessThanOrEqual(askAgainMs + leaseMs + 1_000);
  });

  it("within two minutes when another process resets the host", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ window: "1/d" }), fleet.add({ window: "1/d" })];
    await fleet.demandNow(one, 1);
    wait(fleet, one);
    await fleet.clock.advance(100);
    await fleet.now(other.reset("x.org", "all"));
    expect(await untilStarts(fleet, 2)).toBeLessThanOrEqual(askAgainMs + 1_000);
  });
});
