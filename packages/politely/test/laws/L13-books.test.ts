import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeadlineError, limit, politely, QueueFullError, type Stats } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { anyEnding, anyScript } from "./arbitraries.js";
import { play, type Run, waitingCalls } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, type World, worldCost, worldHosts, worldScopes } from "./worlds.js";

const columns = [
  "asked",
  "granted",
  "refused",
  "cancelled",
  "expired",
  "waiting",
  "released",
  "lapsed",
  "inFlight",
] as const;
type Books = Record<(typeof columns)[number], number>;

/** A world, everything a script can hold, and bounds small enough to be met. */
const anyHistory = anyWorld({ quota: true }).chain((world) =>
  fc.record({
    world: fc.constant(world),
    script: anyScript({
      hosts: worldHosts,
      scopes: worldScopes,
      maxCost: worldCost(world),
      priorities: true,
      maxWaits: true,
      tries: true,
      looks: true,
      cancels: true,
      stalls: true,
      walls: true,
      outside: true,
      endings: anyEnding,
      policies: 2,
      maxLength: 60,
    }).map((body) => drained(body, 8, 3_000_000)),
    keepStats: fc.constantFrom(0, 1, 2, 100_000),
    maxQueue: fc.constantFrom(1, 2, 100_000),
    maxHold: fc.constantFrom(1000, 20_000, 600_000),
  }),
);

describe("L13 books balance", () => {
  it("balances after every step, per host and in total, and agrees with what callers saw", async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async (history) => {
        expect(await faultsOf(history)).toEqual([]);
      }),
      seeded(150),
    );
  });

  it("counts everybody once when a limiter closes, with and without draining", async () => {
    for (const drain of [false, true]) {
      const clock = new VirtualClock();
      const limiter = politely({ default: { minDelay: 100 } }, { clock });
      const fates = Array.from({ length: 9 }, (_, index) =>
        limiter.acquire(`h${index % 3}.example`).then(
          (permit) => {
            permit.release();
            return "granted";
          },
          () => "rejected",
        ),
      );
      await clock.settle();
      const closed = limiter.close({ drain });
      await clock.runToEnd();
      await closed;
      const total = totals(limiter.stats());
      expect(imbalance(total, "in total")).toBeUndefined();
      expect(total.granted).toBe((await Promise.all(fates)).filter((fate) => fate === "granted").length);
      expect([total.asked, total.waiting, total.granted]).toEqual([9, 0, drain ? 9 : 3]);
    }
  });

  it("counts a permit that nobody releases as lapsed in the end, and its late release not at all", async () => {
    for (const limits of [{}, { concurrency: 2 }, { window: "2/1s", countFrom: "answer" }] as const) {
      const clock = new VirtualClock();
      const limiter = limit({ ...limits, maxHold: 5000 }, { clock });
      const [first, second] = [await limiter.acquire(), await limiter.acquire()];
      first.release();
      await clock.advance(4999);
      expect(limiter.stats()).toMatchObject({ granted: 2, released: 1, lapsed: 0, inFlight: 1 });
      // Where a limit follows its permits they lapse on time; elsewhere they are counted in generations of an hour.
      await clock.advance("window" in limits || "concurrency" in limits ? 1 : 7_200_000);
      expect(limiter.stats()).toMatchObject({ granted: 2, released: 1, lapsed: 1, inFlight: 0 });
      second.release("success");
      second.release();
      expect(limiter.stats()).toMatchObject({ granted: 2, released: 1, lapsed: 1, inFlight: 0 });
    }
  });
});

interface History {
  readonly world: World;
  readonly script: Script;
  readonly keepStats: number;
  readonly maxQueue: number;
  readonly maxHold: number;
}

/** Plays a history and looks at the books after every step; what was wrong, if anything, at the first step that was. */
async function faultsOf(history: History): Promise<string[]> {
  const { world, script, keepStats, maxQueue, maxHold } = history;
  const policy = toPolicy(world);
  let faults: string[] = [];
  await play(script, {
    policies: [{ ...policy, default: { ...policy.default, maxQueue, maxHold } }, policy],
    options: { keepStats },
    onStep: (run) => {
      if (faults.length === 0) faults = bookFaults(run);
    },
  });
  return faults;
}

function bookFaults(run: Run): string[] {
  const rows = run.limiter.stats();
  const total = totals(rows);
  const faults = rows.map((row) => imbalance(row, row.host));
  faults.push(imbalance(total, "in total"));

  const count = (matches: (error: unknown) => boolean): number =>
    run.calls.filter((call) => call.fate === "rejected" && matches(call.error)).length;
  const turnedAway = count((error) => error instanceof DeadlineError || error instanceof QueueFullError);
  const started = run.calls.filter((call) => call.fate === "started");
  const open = started.filter((call) => call.releasedUs === undefined).length;
  const seen: readonly (readonly [string, number, number])[] = [
    ["granted", total.granted, started.length + run.recorded],
    ["waiting", total.waiting, waitingCalls(run).length],
    ["cancelled", total.cancelled, count(() => true) - turnedAway],
    ["asked", total.asked, run.calls.length + run.recorded + run.refusedTries.size],
    ["refused and expired", total.refused + total.expired, turnedAway + run.refusedTries.size],
    ["at least in flight", Math.min(open, total.inFlight + total.lapsed), open],
  ];
  for (const [what, booked, happened] of seen) {
    if (booked !== happened) faults.push(`${what}: ${booked} in the books, ${happened} seen by callers`);
  }
  return faults.filter((fault) => fault !== undefined);
}

function totals(rows: readonly Stats[]): Books {
  const sums = columns.map((column) => [column, rows.reduce((sum, row) => sum + row[column], 0)] as const);
  return Object.fromEntries(sums) as Books;
}

/** What does not add up, in words. */
function imbalance(books: Books, whose: string): string | undefined {
  const { asked, granted, refused, cancelled, expired, waiting, released, lapsed, inFlight } = books;
  const counts = columns.map((column) => `${column} ${books[column]}`).join(", ");
  const isCounted = columns.every((column) => Number.isInteger(books[column]) && books[column] >= 0);
  const isAsked = asked === granted + refused + cancelled + expired + waiting;
  const isGranted = granted === released + lapsed + inFlight;
  return isCounted && isAsked && isGranted ? undefined : `${whose}: ${counts}`;
}
