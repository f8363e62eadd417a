import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exclusive, type Lease } from "../../../src/lease.js";
import { memoryStore } from "../../../src/stores/memory.js";
import type { Store } from "../../../src/stores/store.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { seeded } from "../../laws/seeded.js";
import { held, type Passage } from "./rig.js";
import { type ProcessTraits, SimulatedProcess } from "./simulatedProcess.js";

const ttlMs = 1_000;
const stepMs = 25;
const lengthMs = 8_000;

/** What happens to a process, and when. */
interface Incident {
  readonly atMs: number;
  readonly kind: "die" | "stand still";
  readonly forMs: number;
}

interface Plan extends ProcessTraits {
  readonly holdMs: readonly number[];
  readonly waitMs: number;
  readonly jitter: number;
  readonly incidents: readonly Incident[];
}

const anyDelay = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 30 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
);
const anyPassage: fc.Arbitrary<Passage> = fc.record({
  thereMs: anyDelay,
  backMs: anyDelay,
  fate: fc.oneof(
    { weight: 8, arbitrary: fc.constant("fine" as const) },
    { weight: 1, arbitrary: fc.constantFrom("lost" as const, "unheard" as const, "silent" as const) },
  ),
});
const anyIncident: fc.Arbitrary<Incident> = fc.record({
  atMs: fc.integer({ min: 0, max: lengthMs }),
  kind: fc.constantFrom("die" as const, "stand still" as const, "stand still" as const),
  forMs: fc.integer({ min: 1, max: 3_000 }),
});
const anyPlan: fc.Arbitrary<Plan> = fc.record({
  offsetMs: fc.integer({ min: 0, max: 1_000_000 }),
  rate: fc.integer({ min: 9_995, max: 10_005 }).map((rate) => rate / 10_000),
  wallOffMs: fc.integer({ min: -60_000, max: 60_000 }),
  passages: fc.array(anyPassage, { minLength: 1, maxLength: 30 }),
  holdMs: fc.array(fc.integer({ min: 0, max: 4_000 }), { minLength: 1, maxLength: 6 }),
  waitMs: fc.integer({ min: 0, max: 3_000 }),
  jitter: fc.constantFrom(0, 0.3, 0.999),
  incidents: fc.array(anyIncident, { maxLength: 3 }),
});

/** Everything that was seen in one run. */
interface Seen {
  /** What goes against the law, in words. */
  readonly wrong: string[];
  readonly tokens: number[];
  grants: number;
  losses: number;
}

/** One process that takes the lease again and again. What it believes is judged from outside. */
class Runner {
  lease: Lease | undefined;
  readonly process: SimulatedProcess;

  constructor(
    readonly plan: Plan,
    readonly name: string,
    store: Store,
    world: VirtualClock,
    readonly seen: Seen,
    readonly judge: () => void,
  ) {
    this.process = new SimulatedProcess(plan, store, world);
  }

  /** It could act now, and thinks that it may. */
  get believes(): boolean {
    return this.process.isRunning && this.lease !== undefined && !this.lease.signal.aborted;
  }

  async run(): Promise<void> {
    const { process, plan, seen } = this;
    for (let turn = 0; process.world.now() < lengthMs; turn += 1) {
      const { waitMs, jitter } = plan;
      const options = { ttl: ttlMs, wait: waitMs, clock: process.clock, label: this.name, random: () => jitter };
      const answer = await exclusive(process.store, "run", options).catch(() => undefined);
      if (answer?.held === true) {
        seen.grants += 1;
        seen.tokens.push(answer.token);
        this.lease = answer;
        this.judge();
        await process.pause(plan.holdMs[turn % plan.holdMs.length]);
        if (answer.signal.aborted) seen.losses += 1;
        this.lease = undefined;
        await answer.release().catch(() => undefined);
      }
      await process.pause(stepMs);
    }
  }
}

async function play(plans: readonly Plan[]): Promise<Seen & { freeAfterMs: number }> {
  const world = new VirtualClock({ nowMs: 0 });
  const store = memoryStore(() => Math.floor(world.now() * 1_000));
  const seen: Seen = { wrong: [], tokens: [], grants: 0, losses: 0 };
  const runners: Runner[] = [];
  const judge = (): void => {
    const holders = runners.filter((runner) => runner.believes);
    if (holders.length > 1) seen.wrong.push(`${world.now()} ms: ${holders.map(({ name }) => name).join(" and ")}`);
  };
  for (const plan of plans) runners.push(new Runner(plan, `runner ${runners.length}`, store, world, seen, judge));
  for (const { plan, process } of runners) {
    for (const { atMs, kind, forMs } of plan.incidents) {
      world.setTimer(atMs, () => (kind === "die" ? process.die() : process.standStill()));
      if (kind === "stand still") world.setTimer(atMs + forMs, () => process.goOn(judge));
    }
  }
  for (const runner of runners) void runner.run();
  for (let atMs = 0; atMs < lengthMs; atMs += stepMs) {
    await world.advance(stepMs);
    judge();
  }
  // All die at once. Whoever comes then gets it within its life.
  for (const { process } of runners) process.die();
  const fromMs = world.now();
  const next = exclusive(store, "run", { ttl: ttlMs, wait: 20 * ttlMs, clock: world });
  let freeAfterMs = Number.POSITIVE_INFINITY;
  void next.then((answer) => {
    if (!answer.held) return;
    freeAfterMs = world.now() - fromMs;
    seen.tokens.push(answer.token);
  });
  await world.advance(20 * ttlMs);
  return { ...seen, freeAfterMs };
}

describe("processes that die, stand still, have wrong clocks and bad links", () => {
  it("never have two who believe that they hold the lease; tokens grow, and a dead holder's lease is free within its life", async () => {
    let grants = 0;
    let losses = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyPlan, { minLength: 2, maxLength: 4 }), async (plans) => {
        const seen = await play(plans);
        expect(seen.wrong).toEqual([]);
        expect(seen.tokens).toEqual([...new Set(seen.tokens)].toSorted((a, b) => a - b));
        // A request may have been on its way when its sender died, and take or renew the lease once more.
        expect(seen.freeAfterMs).toBeLessThanOrEqual(ttlMs + 1_500 + 10);
        grants += seen.grants;
        losses += seen.losses;
      }),
      seeded(40),
    );
    // Else nothing was shown.
    expect(grants).toBeGreaterThan(40);
    expect(losses).toBeGreaterThan(0);
  });

  it("give a lease up before the store does, though the store's clock is as fast and theirs as slow as clocks get", async () => {
    const world = new VirtualClock();
    const store = memoryStore(() => Math.floor(world.now() * 1.0005 * 1_000));
    const passages: Passage[] = [
      { thereMs: 0, backMs: 0, fate: "fine" },
      ...Array.from({ length: 60 }, () => ({ thereMs: 0, backMs: 0, fate: "lost" as const })),
    ];
    const process = new SimulatedProcess({ offsetMs: 5, rate: 0.9995, wallOffMs: 0, passages }, store, world);
    const asking = exclusive(process.store, "run", { ttl: "300s", clock: process.clock });
    await world.advance(0);
    const lease = held(await asking);
    await world.advance(299_000);
    expect(lease.signal.aborted).toBe(false);
    let next: Awaited<typeof asking>;
    do {
      await world.advance(1);
      next = await exclusive(store, "run", { ttl: "300s", clock: world });
    } while (!next.held);
    expect(world.now()).toBeCloseTo(299_850, -1);
    expect(lease.signal.aborted).toBe(true);
  });
});
