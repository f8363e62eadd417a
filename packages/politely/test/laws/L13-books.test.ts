import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  DeadlineError,
  type Limits,
  limit,
  type PolicyInput,
  politely,
  QueueFullError,
  type Stats,
} from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained } from "../oracle/script.js";
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
      fc.asyncProperty(anyHistory, async ({ world, script, keepStats, maxQueue, maxHold }) => {
        await play(script, {
          policies: policiesOf(world, { maxQueue, maxHold }),
          options: { keepStats },
          onStep: checkBooks,
        });
      }),
      seeded(150),
    );
  });

  it("balances as well when most hosts are beyond maxKeys", async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, fc.integer({ min: 1, max: 2 }), async (history, maxKeys) => {
        const { world, script, keepStats, maxQueue, maxHold } = history;
        const options = { keepStats, maxKeys };
        await play(script, { policies: policiesOf(world, { maxQueue, maxHold }), options, onStep: checkBooks });
      }),
      seeded(100),
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
      expect(imbalance(total)).toBeUndefined();
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

function policiesOf(world: World, bounds: Pick<Limits, "maxQueue" | "maxHold">): PolicyInput[] {
  const policy = toPolicy(world);
  return [{ ...policy, default: { ...policy.default, ...bounds } }, policy];
}

function checkBooks(run: Run): void {
  const rows = run.limiter.stats();
  for (const row of rows) expect([row.host, imbalance(row)]).toEqual([row.host, undefined]);
  const total = totals(rows);
  expect(imbalance(total)).toBeUndefined();

  const count = (matches: (error: unknown) => boolean): number =>
    run.calls.filter((call) => call.fate === "rejected" && matches(call.error)).length;
  const turnedAway = count((error) => error instanceof DeadlineError || error instanceof QueueFullError);
  const rejected = count(() => true);
  const started = run.calls.filter((call) => call.fate === "started");
  expect(total).toMatchObject({
    granted: started.length + run.recorded,
    waiting: waitingCalls(run).length,
    cancelled: rejected - turnedAway,
    asked: run.calls.length + run.recorded + run.refusedTries.size,
  });
  expect(total.refused + total.expired).toBe(turnedAway + run.refusedTries.size);
  expect(total.inFlight + total.lapsed).toBeGreaterThanOrEqual(
    started.filter((call) => call.releasedUs === undefined).length,
  );
}

function totals(rows: readonly Stats[]): Books {
  const sums = columns.map((column) => [column, rows.reduce((sum, row) => sum + row[column], 0)] as const);
  return Object.fromEntries(sums) as Books;
}

/** What does not add up, in words. */
function imbalance(books: Books): string | undefined {
  const { asked, granted, refused, cancelled, expired, waiting, released, lapsed, inFlight } = books;
  if (columns.some((column) => !Number.isInteger(books[column]) || books[column] < 0))
    return `not a count: ${JSON.stringify(books)}`;
  if (asked !== granted + refused + cancelled + expired + waiting) {
    return `asked ${asked}, granted ${granted}, refused ${refused}, cancelled ${cancelled}, expired ${expired}, waiting ${waiting}`;
  }
  if (granted !== released + lapsed + inFlight)
    return `granted ${granted}, released ${released}, lapsed ${lapsed}, in flight ${inFlight}`;
  return undefined;
}
