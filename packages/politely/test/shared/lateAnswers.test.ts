import { describe, expect, it } from "vitest";
import type { LimiterEvent } from "../../src/observe/types.js";
import type { SharedLimiter, SharedPermit } from "../../src/sharedTypes.js";
import type { Outcome } from "../../src/types.js";
import { Fleet } from "./fleet.js";

const policy = { rate: "10/s", burst: 10, cooldown: "60s" } as const;

/** How an answer is heard: of a permit that the store granted, of one that it did not, or by hand. */
const ways = ["a start of the store", "a start of the outage", "a recorded start"] as const;

/**
 * One process hears an answer just after the store has gone, for `awayMs`; another one asks when it is back.
 *
 * Gives how long after the answer that starts.
 */
async function startAfterMs(way: (typeof ways)[number], outcome: Outcome, awayMs: number): Promise<number> {
  const fleet = new Fleet();
  const [one, other] = [fleet.add(policy), fleet.add(policy)];
  const first = await fleet.now(one.acquire("x.org"));
  fleet.mood = "refusing";
  void one.check("y.org").catch(() => undefined);
  await fleet.clock.advance(8_000);
  const heardMs = fleet.clock.now();
  await hear(fleet, one, way === "a start of the store" ? first : undefined, way, outcome);
  await fleet.clock.advance(awayMs);
  fleet.mood = "well";
  await fleet.clock.advance(10_000);
  void fleet.demand(other, 1);
  await fleet.clock.advance(1_200_000);
  return fleet.starts[0].atMs - heardMs;
}

async function hear(
  fleet: Fleet,
  limiter: SharedLimiter,
  held: SharedPermit | undefined,
  way: (typeof ways)[number],
  outcome: Outcome,
): Promise<void> {
  if (way === "a recorded start") void limiter.record("x.org", outcome);
  else void (held ?? (await fleet.now(limiter.acquire("x.org")))).release(outcome);
  await fleet.clock.advance(10);
}

describe.each(ways)("a 429 heard while the store is away, to %s,", (way) => {
  it("with a Retry-After that is over when the store is back, holds nobody any more", async () => {
    const ms = await startAfterMs(way, { kind: "rate_limited", retryAfterMs: 600_000 }, 900_000);
    expect(ms).toBeLessThan(916_000);
  });

  it("with one that is not, holds everybody until it is over, and no longer", async () => {
    const ms = await startAfterMs(way, { kind: "rate_limited", retryAfterMs: 600_000 }, 300_000);
    expect(ms).toBeGreaterThanOrEqual(600_000);
    expect(ms).toBeLessThan(602_000);
  });

  it("without one, holds for the cooldown from when it was heard", async () => {
    expect(await startAfterMs(way, "rate_limited", 900_000)).toBeLessThan(916_000);
    const ms = await startAfterMs(way, "rate_limited", 20_000);
    expect(ms).toBeGreaterThanOrEqual(60_000);
    expect(ms).toBeLessThan(62_000);
  });
});

it.each(ways)("a 429 heard while the store is away, to %s, is told as a cooldown, once", async (way) => {
  const fleet = new Fleet();
  const one = fleet.add(policy);
  const first = await fleet.now(one.acquire("x.org"));
  fleet.mood = "refusing";
  void one.check("y.org").catch(() => undefined);
  await fleet.clock.advance(8_000);
  const told: LimiterEvent[] = [];
  one.subscribe((event) => {
    if (event.type === "cooldown") told.push(event);
  });
  await hear(fleet, one, way === "a start of the store" ? first : undefined, way, "rate_limited");
  const untilMs = fleet.clock.now() - 10 + 60_000;
  expect(told).toMatchObject([{ key: "x.org", untilMs, step: 1 }]);
  await fleet.clock.advance(10_000);
  fleet.mood = "well";
  await fleet.clock.advance(20_000);
  expect(told).toHaveLength(1);
});

it("of several 429s heard while the store is away the one that ends last counts, whichever came last", async () => {
  const fleet = new Fleet();
  const [one, other] = [fleet.add(policy), fleet.add(policy)];
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  void one.check("y.org").catch(() => undefined);
  await fleet.clock.advance(8_000);
  const heardMs = fleet.clock.now();
  void one.record("x.org", { kind: "rate_limited", retryAfterMs: 600_000 });
  await fleet.clock.advance(100_000);
  void one.record("x.org", { kind: "rate_limited", retryAfterMs: 300_000 });
  await fleet.clock.advance(100_000);
  fleet.mood = "well";
  await fleet.clock.advance(10_000);
  void fleet.demand(other, 1);
  await fleet.clock.advance(1_200_000);
  const afterMs = fleet.starts[1].atMs - heardMs;
  expect(afterMs).toBeGreaterThanOrEqual(600_000);
  expect(afterMs).toBeLessThan(602_000);
});
