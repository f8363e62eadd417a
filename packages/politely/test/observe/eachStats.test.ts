import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limiter, type LimiterOptions, politely, type Stats } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { seeded } from "../laws/seeded.js";
import { Fleet } from "../shared/fleet.js";

const anyStep = fc.record({
  host: fc.nat({ max: 9 }),
  times: fc.integer({ min: 1, max: 3 }),
  outcome: fc.constantFrom("success", "rate_limited" as const),
  laterMs: fc.constantFrom(0, 0, 50, 5_000),
});
type Step = typeof anyStep extends fc.Arbitrary<infer One> ? One : never;

const anyBounds = fc.record({ keepStats: fc.constantFrom(0, 1, 3, 100) });

function world(bounds: Pick<LimiterOptions, "keepStats">): {
  readonly clock: VirtualClock;
  readonly limiter: Limiter;
} {
  const clock = new VirtualClock();
  const policy = { default: { rate: "1/s", window: "5/10s", cooldown: 100 } } as const;
  return { clock, limiter: politely(policy, { clock, ...bounds }) };
}

async function play({ clock, limiter }: ReturnType<typeof world>, { host, times, outcome, laterMs }: Step) {
  for (let each = 0; each < times; each++) limiter.record(`h${host}.org`, outcome);
  await clock.advance(laterMs);
}

describe("eachStats", () => {
  it("gives the rows of stats() in their order while nothing happens in between", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), anyBounds, async (steps, bounds) => {
        const one = world(bounds);
        for (const step of steps) await play(one, step);
        // stats() puts everything in order first, so that both see the same hosts.
        const rows = one.limiter.stats();
        expect([...one.limiter.eachStats()]).toEqual(rows);
      }),
      seeded(200),
    );
  });

  it("gives sums between those at its beginning and at its end, less what was told before its evict", async () => {
    const anyTurns = fc.array(fc.array(anyStep, { maxLength: 3 }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 30 }), anyTurns, anyBounds, async (steps, turns, bounds) => {
        const one = world(bounds);
        for (const step of steps) await play(one, step);
        const [least, told] = [sum(one.limiter.stats()), new Map<string, Stats>()];
        const stop = one.limiter.subscribe(({ type, key }) => {
          if (type === "evict") told.delete(key);
        });
        let turn = 0;
        for (const row of one.limiter.eachStats()) {
          // The row of the folded ones is the last: whoever is folded later is not in it.
          if (row.foldedHosts !== undefined) stop();
          told.set(row.host, row);
          for (const step of turns[turn++] ?? []) await play(one, step);
        }
        const found = sum([...told.values()]);
        expect(found).toBeGreaterThanOrEqual(least);
        expect(found).toBeLessThanOrEqual(sum(one.limiter.stats()));
      }),
      seeded(400),
    );
  });

  it("ends, though each row brings two new hosts", () => {
    const { limiter } = world({ keepStats: 1_000 });
    for (let index = 0; index < 10; index++) limiter.record(`old${index}.org`, "success");
    const names: string[] = [];
    for (const { host } of limiter.eachStats()) {
      names.push(host);
      limiter.record(`new${names.length}a.org`, "success");
      limiter.record(`new${names.length}b.org`, "success");
    }
    expect(names).toEqual(Array.from({ length: 10 }, (_, index) => `old${index}.org`));
  });

  it("gives the counts of this process, with a store too", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s", burst: 10 });
    await fleet.demandNow(limiter, 2);
    expect([...limiter.eachStats()]).toEqual(await limiter.stats());
    expect([...limiter.eachStats()]).toMatchObject([{ host: "x.org", granted: 2 }]);
  });
});

function sum(rows: readonly Stats[]): number {
  return rows.reduce((total, { throttledRequests }) => total + throttledRequests, 0);
}
