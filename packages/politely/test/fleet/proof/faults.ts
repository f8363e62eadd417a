import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import type { FaultyProxy } from "../../servers/faultyProxy.js";

/** One thing that goes wrong on the way to the server, and for how long. */
interface Fault {
  readonly kind: "lost replies" | "slow" | "cut" | "half open";
  readonly forMs: number;
  /** How many replies are lost, or how slow it is. */
  readonly much: number;
  /** Quiet time afterwards. */
  readonly restMs: number;
}

const between = (min: number, max: number): fc.Arbitrary<number> => fc.noBias(fc.integer({ min, max }));

/** Faults, always the same for the same seed: each kind at least once, in a random order. */
export function faultsOf(seed: number): Fault[] {
  const of = (kind: Fault["kind"], forMs: fc.Arbitrary<number>, much: fc.Arbitrary<number>): fc.Arbitrary<Fault> =>
    fc.record({ kind: fc.constant(kind), forMs, much, restMs: between(50, 300) });
  const each = [
    of("lost replies", between(50, 300), between(1, 4)),
    of("lost replies", between(50, 300), between(1, 4)),
    of("slow", between(200, 600), between(10, 120)),
    of("cut", between(50, 500), fc.constant(0)),
    of("half open", between(100, 600), fc.constant(0)),
  ];
  const all = fc.tuple(...each, ...each).chain((list) => fc.shuffledSubarray(list, { minLength: list.length }));
  return fc.sample(all, { seed, numRuns: 1 })[0];
}

/** Lets faults happen, one after the other. In the end the way is clear. */
export async function suffer(proxy: FaultyProxy, faults: readonly Fault[]): Promise<void> {
  for (const { kind, forMs, much, restMs } of faults) {
    if (kind === "lost replies") proxy.swallowReplies(much);
    else if (kind === "slow") proxy.delay(much);
    else if (kind === "cut") await proxy.cut();
    else proxy.halfOpen();
    await delay(forMs);
    await proxy.heal();
    await delay(restMs);
  }
}
