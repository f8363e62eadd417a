import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import type { FleetEntry } from "../fleetMember.js";
import type { Fleet } from "../startFleet.js";
import { allStart, type Ground, startWorkers } from "./ground.js";
import { type Book, policyOf } from "./numbers.js";

/** How many processes there are to begin with. */
const crew = 4;
const endsWithinMs = 20_000;

/** What the processes do meanwhile. */
export interface StormLoad {
  readonly book: Book;
  /** Who ask for each host, in each process. */
  readonly callers: number;
  readonly holdMs: readonly [number, number];
}

/** Rate, windows, gap, places, and all of it together over everything. */
export const rough: StormLoad = {
  callers: 3,
  holdMs: [0, 120],
  book: {
    permitTtlMs: 1_500,
    hosts: {
      "rate.test": { rate: { count: 30, perMs: 1_000, burst: 3 }, windows: [{ count: 12, perMs: 500 }] },
      "places.test": { windows: [{ count: 10, perMs: 250 }], places: 3 },
      "gap.test": { gapMs: 40, places: 1, windows: [{ count: 40, perMs: 2_000 }] },
    },
    global: { rate: { count: 60, perMs: 1_000, burst: 10 }, places: 4, windows: [{ count: 25, perMs: 500 }] },
  },
};

/** The same for a store that writes one key some ten times a second on a busy machine. */
export const gentle: StormLoad = {
  callers: 1,
  holdMs: [50, 200],
  book: {
    permitTtlMs: 2_000,
    hosts: {
      "rate.test": { rate: { count: 6, perMs: 1_000, burst: 2 }, windows: [{ count: 4, perMs: 500 }] },
      "places.test": { windows: [{ count: 4, perMs: 500 }], places: 2 },
      "gap.test": { gapMs: 150, places: 1, windows: [{ count: 10, perMs: 2_000 }] },
    },
    global: { rate: { count: 12, perMs: 1_000, burst: 3 }, places: 3, windows: [{ count: 8, perMs: 500 }] },
  },
};

/** Something that happens to one of the processes. */
type Blow =
  | { readonly kind: "kill"; readonly whom: number }
  | { readonly kind: "pause"; readonly whom: number; readonly forMs: number }
  | { readonly kind: "join"; readonly clockOffsetSec: number };

/** What happens, each some time after the one before. */
interface Storm {
  readonly seed: number;
  readonly clocksSec: readonly number[];
  readonly blows: readonly { readonly afterMs: number; readonly blow: Blow }[];
}

const clock = fc.constantFrom(-60, 0, 60);
const blow: fc.Arbitrary<Blow> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("kill" as const), whom: fc.noBias(fc.nat(99)) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pause" as const),
      whom: fc.noBias(fc.nat(99)),
      forMs: fc.noBias(fc.integer({ min: 300, max: 2_000 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("join" as const), clockOffsetSec: clock }) },
);

/** Storms, always the same for the same seed. */
export function stormsOf(seed: number, count: number): Storm[] {
  const storm = fc.record({
    seed: fc.nat(),
    clocksSec: fc.array(clock, { minLength: crew, maxLength: crew }),
    blows: fc.array(fc.record({ afterMs: fc.noBias(fc.integer({ min: 50, max: 450 })), blow }), {
      minLength: 7,
      maxLength: 8,
    }),
  });
  return fc.sample(storm, { seed, numRuns: count });
}

/** Lets a storm pass over a fleet, and gives its log once all who are left have ended by themselves. */
export async function weather(storm: Storm, ground: Ground, load: StormLoad): Promise<FleetEntry[]> {
  const { book, callers, holdMs } = load;
  const input = {
    seed: storm.seed,
    policy: policyOf(book),
    options: { name: `storm ${storm.seed}`, outage: "closed" },
    loads: Object.keys(book.hosts).map((host) => ({ host, callers, holdMs, unused: 0.1 })),
  };
  const members = storm.clocksSec.map((clockOffsetSec, index) => ({ id: `first-${index}`, clockOffsetSec }));
  await using fleet = await startWorkers(ground, members, input);
  fleet.go();
  await strike(fleet, storm);
  // Nobody hangs, and nobody starves.
  await allStart(fleet, idsLeft(fleet));
  return await fleet.finish(endsWithinMs);
}

/** Carries out the blows of a storm. Those who are paused go on at their time, or in the end. */
async function strike(fleet: Fleet, { blows }: Storm): Promise<void> {
  const alive = new Set(fleet.members.map(({ id }) => id));
  const paused = new Set<string>();
  const later: Promise<void>[] = [];
  const joins: Promise<void>[] = [];
  for (const [index, { afterMs, blow: next }] of blows.entries()) {
    await delay(afterMs);
    if (next.kind === "join") {
      const id = `late-${index}`;
      const joined = fleet.add({ id, clockOffsetSec: next.clockOffsetSec }).then(() => {
        alive.add(id);
        // To this one alone: others may still be on their way.
        fleet.send(id, "go");
      });
      joins.push(joined);
      continue;
    }
    const standing = [...alive].filter((id) => !paused.has(id));
    const whom = standing[next.whom % standing.length];
    if (whom === undefined) continue;
    if (next.kind === "pause") {
      paused.add(whom);
      await fleet.pause(whom);
      const goesOn = delay(next.forMs).then(() => {
        paused.delete(whom);
        fleet.resume(whom);
      });
      later.push(goesOn);
    } else if (alive.size > 1) {
      alive.delete(whom);
      await fleet.kill(whom);
    }
  }
  await Promise.all([...joins, ...later]);
}

function idsLeft(fleet: Fleet): string[] {
  return fleet.members.filter(({ isAlive }) => isAlive).map(({ id }) => id);
}
