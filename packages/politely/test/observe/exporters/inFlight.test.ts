import fc from "fast-check";
import { expect, it } from "vitest";
import type { Limiter } from "../../../src/index.js";
import type { Series } from "../../../src/observe/metrics.js";
import { Watch } from "../../../src/observe/watch.js";
import { anyEnding, anyScript } from "../../laws/arbitraries.js";
import { play } from "../../laws/play.js";
import { seeded } from "../../laws/seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts } from "../../laws/worlds.js";

const silent: Series = { count: () => undefined, record: () => undefined };
const maker = { make: () => silent, absorb: () => undefined };

it("what events tell of a host's permits in flight is what the statistics say, after every step and without looking at them", async () => {
  const anyHistory = anyWorld({}).chain((world) =>
    fc.record({
      world: fc.constant(world),
      maxHold: fc.constantFrom(500, 5_000),
      script: anyScript({
        hosts: worldHosts,
        maxCost: worldCost(world),
        tries: true,
        cancels: true,
        stalls: true,
        outside: true,
        endings: anyEnding,
        maxLength: 60,
      }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(anyHistory, async ({ world, script, maxHold }) => {
      let watch: Watch<Series> | undefined;
      const policy = toPolicy(world);
      // Permits of hosts with a concurrency are followed, and lapse by themselves.
      const host = { ...policy.default, concurrency: policy.default?.concurrency ?? 3, maxHold };
      const faults: string[] = [];
      await play(script, {
        policies: [{ ...policy, default: host }],
        onReady: (limiter: Limiter) => {
          watch = new Watch(limiter, { maker, defaultMaxHosts: 5 });
        },
        onStep: ({ limiter }) => {
          for (const row of limiter.stats()) {
            const told = watch?.table.find(row.host)?.open ?? 0;
            if (told !== row.inFlight) faults.push(`${row.host}: ${told} by events, ${row.inFlight} in flight`);
          }
        },
      });
      expect(faults).toEqual([]);
    }),
    seeded(150),
  );
});
