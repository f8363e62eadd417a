import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limiter, type Limits, type Permit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { spanUs } from "../laws/arbitraries.js";
import { seeded } from "../laws/seeded.js";

const hosts = ["a.example", "b.example"];

const anyLimits: fc.Arbitrary<Limits> = fc.record(
  {
    minDelay: fc.integer({ min: 1, max: 400 }),
    rate: fc.record({ count: fc.integer({ min: 1, max: 9 }), per: fc.integer({ min: 10, max: 900 }) }),
    maxHold: fc.integer({ min: 50, max: 3_000 }),
  },
  { requiredKeys: ["maxHold"] },
);

type Step = {
  readonly kind: "try" | "acquire" | "release" | "unused" | "bad" | "configure" | "reset";
  readonly host: number;
  readonly pick: number;
  readonly afterUs: number;
};

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("try", "try", "try", "acquire", "release", "release", "unused", "bad", "configure", "reset"),
  host: fc.nat(1),
  pick: fc.nat(9),
  afterUs: spanUs(500),
});

describe("the short way of hosts with a gap and a bucket at most", () => {
  it("grants, refuses and counts as the composition of all limits does", async () => {
    const scene = fc.tuple(
      fc.array(anyLimits, { minLength: 2, maxLength: 3 }),
      fc.nat(2),
      fc.array(anyStep, { maxLength: 60 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([limits, keepStats, steps]) => {
        const told: unknown[][] = [];
        // Where anybody listens, every start goes the long way.
        for (const isShort of [true, false]) {
          const clock = new VirtualClock();
          const limiter = politely({ default: limits[0] }, { clock, keepStats });
          if (!isShort) limiter.subscribe(() => undefined);
          told.push(await play(limiter, clock, limits, steps));
        }
        expect(told[0]).toEqual(told[1]);
      }),
      seeded(200),
    );
  });
});

/** Plays the steps and says all that could be seen of them. */
async function play(
  limiter: Limiter,
  clock: VirtualClock,
  limits: readonly Limits[],
  steps: readonly Step[],
): Promise<unknown[]> {
  const seen: unknown[] = [];
  const open: Permit[] = [];
  for (const { kind, host, pick, afterUs } of steps) {
    await clock.advance(afterUs / 1000);
    const name = hosts[host];
    if (kind === "try") {
      const permit = limiter.tryAcquire(name);
      if (permit !== undefined) open.push(permit);
      seen.push(permit?.startedAtMs);
    } else if (kind === "acquire") {
      void limiter.acquire(name).then((permit) => {
        seen.push(permit.startedAtMs);
        open.push(permit);
      });
      await clock.settle();
    } else if (kind === "configure") limiter.configure({ default: limits[pick % limits.length] });
    else if (kind === "reset") limiter.reset(name);
    else {
      const [permit] = open.splice(pick % Math.max(1, open.length), 1);
      permit?.release(kind === "unused" ? "unused" : kind === "bad" ? "server_error" : "success");
    }
    seen.push(
      limiter.explain(name),
      limiter.stats().map((stats) => stats.toJSON()),
    );
  }
  await clock.runToEnd();
  return seen;
}
