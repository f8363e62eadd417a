import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { Permits } from "../../src/serve/permits.js";
import type { ServicePermit } from "../../src/serve/serviceLimiter.js";
import type { Ticker } from "../../src/view/ticker.js";
import { FakeTicker } from "../view/fakeIo.js";

/** A permit that counts how often it was released. */
function permit(): ServicePermit & { readonly outcomes: unknown[] } {
  const outcomes: unknown[] = [];
  return {
    key: "x.org",
    waitedMs: 0,
    startedAtMs: 0,
    outcomes,
    report: () => undefined,
    release: (outcome) => void outcomes.push(outcome),
  };
}

const onFailure = (): void => undefined;

it("lapses each permit after its lifetime, never before it and at most 200 ms later, and each ends once", () => {
  const step = fc.oneof(
    fc.record({ verb: fc.constant("add" as const), ttlMs: fc.integer({ min: 100, max: 5_000 }) }),
    fc.record({
      verb: fc.constant("renew" as const),
      which: fc.nat(),
      ttlMs: fc.option(fc.integer({ min: 100, max: 5_000 })),
    }),
    fc.record({ verb: fc.constant("take" as const), which: fc.nat() }),
    fc.record({ verb: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ticker = new FakeTicker();
      const permits = new Permits({ ticker, onFailure });
      const model: {
        id: string;
        permit: ReturnType<typeof permit>;
        ttlMs: number;
        endsMs: number;
        isTaken: boolean;
      }[] = [];
      const isHeld = (one: (typeof model)[number]) => !one.isTaken && one.permit.outcomes.length === 0;
      let isRight = true;
      for (const one of steps) {
        if (one.verb === "advance") ticker.advance(one.ms);
        else if (one.verb === "add") {
          const made = permit();
          model.push({
            id: permits.add(made, one.ttlMs),
            permit: made,
            ttlMs: one.ttlMs,
            endsMs: ticker.nowMs() + one.ttlMs,
            isTaken: false,
          });
        } else if (model.length > 0) {
          const chosen = model[one.which % model.length];
          const wasHeld = isHeld(chosen);
          const ttlMs = one.verb === "renew" ? (one.ttlMs ?? chosen.ttlMs) : chosen.ttlMs;
          const did =
            one.verb === "take"
              ? permits.take(chosen.id) !== undefined
              : permits.renew(chosen.id, one.ttlMs ?? undefined) === ttlMs;
          isRight &&= did === wasHeld;
          if (one.verb === "take") chosen.isTaken ||= wasHeld;
          else if (wasHeld) Object.assign(chosen, { ttlMs, endsMs: ticker.nowMs() + ttlMs });
        }
        const nowMs = ticker.nowMs();
        expect(isRight).toBe(true);
        for (const { permit: given, endsMs, isTaken } of model) {
          const least = !isTaken && nowMs >= endsMs + 200 ? 1 : 0;
          const most = isTaken || nowMs < endsMs ? 0 : 1;
          expect(given.outcomes.length).toBeGreaterThanOrEqual(least);
          expect(given.outcomes.length).toBeLessThanOrEqual(most);
        }
        expect(permits.size).toBe(model.filter(isHeld).length);
      }
    }),
    seeded(300),
  );
});

it("remembers how the last permits ended, and no more of them than it was told to", () => {
  const permits = new Permits({ ticker: new FakeTicker(), onFailure, remembered: 2 });
  const ids = [1, 2, 3].map(() => permits.add(permit(), 1_000));
  for (const id of ids) permits.take(id);
  expect(ids.map((id) => permits.endOf(id).how)).toEqual(["unknown", "released", "released"]);
});

it("keeps no timer while nobody holds a permit", () => {
  const ticker = new FakeTicker();
  const permits = new Permits({ ticker, onFailure });
  const id = permits.add(permit(), 1_000);
  permits.add(permit(), 1_000);
  expect(ticker.running).toBe(1);
  permits.take(id);
  permits.lapseAll();
  expect([ticker.running, permits.size, permits.lapsedCount]).toEqual([0, 0, 1]);
});

it("lapses what is over after the machine has slept for a day", () => {
  const sleeper = { nowMs: 0, look: (): void => undefined };
  const ticker: Ticker = {
    nowMs: () => sleeper.nowMs,
    every(_ms, task) {
      sleeper.look = task;
      return () => undefined;
    },
  };
  const permits = new Permits({ ticker, onFailure });
  const [short, long] = [permit(), permit()];
  permits.add(short, 1_000);
  permits.add(long, 3_600_000);
  sleeper.nowMs = 86_400_000;
  sleeper.look();
  expect([short.outcomes, long.outcomes]).toEqual([[undefined], [undefined]]);
});

it("gives back unused what never reached its caller, and says what went wrong with a release that nobody waits for", async () => {
  const failures: unknown[] = [];
  const permits = new Permits({ ticker: new FakeTicker(), onFailure: (error) => failures.push(error) });
  const given = permit();
  const id = permits.add(given, 1_000);
  permits.takeBack(id);
  permits.takeBack(id);
  expect([given.outcomes, permits.endOf(id).how]).toEqual([["unused"], "undelivered"]);
  const failure = new Error("the store is away");
  permits.add({ ...permit(), release: () => Promise.reject(failure) }, 1_000);
  permits.lapseAll();
  await Promise.resolve();
  expect(failures).toEqual([failure]);
});
