import fc, { type Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import { ONE } from "../../src/scheduler/cost.js";
import type { Taken } from "../../src/scheduler/ledger.js";
import { anySpec } from "../laws/arbitraries.js";
import { seeded } from "../laws/seeded.js";
import { type LimitSpec, maxCost, toLimits } from "../oracle/spec.js";
import { specViolation } from "../oracle/violations.js";
import { oneKey, units } from "./oneKey.js";

const second = 1_000_000;

/** A start as the full history knows it: what it still costs, and how to give it back while it is open. */
interface Made {
  readonly taken: Taken;
  cost: number;
  isOpen: boolean;
}

interface Step {
  /** Wait for as long as the ledger says, or for so many microseconds. */
  readonly pauseUs: number | "ready";
  readonly cost: number;
  /** Which open start ends here, and how much of it was used after all; undefined when a start is asked for instead. */
  readonly ends: { readonly pick: number; readonly used: "nothing" | "half" | "all" } | undefined;
}

const anyStep: Arbitrary<Step> = fc.record({
  pauseUs: fc.oneof(fc.constant("ready" as const), fc.constant(0), fc.integer({ min: 1, max: 2 * second })),
  cost: fc.integer({ min: 1, max: 4 }),
  ends: fc.option(fc.record({ pick: fc.nat(), used: fc.constantFrom("nothing", "nothing", "half", "all") }), {
    nil: undefined,
    freq: 2,
  }),
});

/** Plays steps on one key. Everything that was started stays in the history at what it was found to cost. */
function play(
  spec: LimitSpec,
  steps: readonly Step[],
  onStep?: (made: readonly Made[], nowUs: number, cost: number) => void,
) {
  const { ledger, slot } = oneKey(toLimits(spec));
  const made: Made[] = [];
  const most = maxCost(spec);
  let nowUs = 0;
  for (const { pauseUs, cost: wanted, ends } of steps) {
    const cost = Math.min(wanted, most);
    nowUs = pauseUs === "ready" ? Math.max(nowUs, ledger.readyAt(slot, units(cost), nowUs)) : nowUs + pauseUs;
    const open = made.filter(({ isOpen }) => isOpen);
    if (ends !== undefined && open.length > 0) {
      const one = open[ends.pick % open.length];
      const used = ends.used === "nothing" ? 0 : ends.used === "half" ? Math.floor(one.cost / 2) : one.cost;
      if (used < one.cost) ledger.giveBack(one.taken, units(one.cost - used), nowUs, ends.used === "nothing");
      ledger.end(one.taken, nowUs, ends.used === "nothing" ? undefined : used);
      one.isOpen = false;
      one.cost = ends.used === "nothing" ? 0 : used;
    } else if (ledger.readyAt(slot, units(cost), nowUs) <= nowUs) {
      made.push({ taken: ledger.take(slot, units(cost), nowUs), cost, isOpen: true });
    }
    onStep?.(made, nowUs, ledger.readyAt(slot, units(cost), nowUs));
  }
  return { ledger, slot, made, nowUs };
}

/** The history as the oracle reads it. */
function traceOf(made: readonly Made[]) {
  return made.map(({ taken, cost }) => ({ atUs: taken.startedUs, cost, unused: cost === 0 }));
}

describe("what is given back", () => {
  it("never lets the starts that remain break a gap, a bucket or a window", () => {
    const anyMix = anySpec({ concurrency: false, answer: false });
    fc.assert(
      fc.property(anyMix, fc.array(anyStep, { maxLength: 50 }), (spec, steps) => {
        const { made } = play(spec, steps);
        expect(specViolation(traceOf(made), spec)).toBeUndefined();
      }),
      seeded(300),
    );
  });

  it("is all of it for a window: the next start is when the remaining ones alone would let it be", () => {
    const anyWindows = fc.record({
      windows: fc.array(
        fc.record({ count: fc.integer({ min: 4, max: 9 }), perUs: fc.integer({ min: 1, max: 4 * second }) }),
        {
          minLength: 1,
          maxLength: 2,
        },
      ),
    });
    fc.assert(
      fc.property(anyWindows, fc.array(anyStep, { maxLength: 50 }), (spec, steps) => {
        let step = 0;
        play(spec, steps, (made, nowUs, readyUs) => {
          const { cost } = steps[step];
          step += 1;
          const fitsAt = (atUs: number): boolean =>
            spec.windows.every(({ count, perUs }) => {
              const inside = made.filter(({ taken }) => taken.startedUs + perUs > atUs);
              return inside.reduce((sum, each) => sum + each.cost, cost) <= count;
            });
          const leaving = spec.windows.flatMap(({ perUs }) => made.map(({ taken }) => taken.startedUs + perUs));
          const instants = [nowUs, ...leaving.filter((atUs) => atUs > nowUs)].sort((a, b) => a - b);
          expect(readyUs).toBe(instants.find(fitsAt));
        });
      }),
      seeded(150),
    );
  });

  it("is never more than was taken: a start given back at once leaves the key as it was", () => {
    const anyMix = anySpec({ concurrency: false, answer: false });
    fc.assert(
      fc.property(anyMix, fc.array(anyStep, { maxLength: 25 }), (spec, steps) => {
        const { ledger, slot, nowUs } = play(spec, steps);
        const atUs = Math.max(nowUs, ledger.readyAt(slot, ONE, nowUs));
        const before = [1, maxCost(spec)].map((cost) => ledger.readyAt(slot, units(cost), atUs));
        const taken = ledger.take(slot, ONE, atUs);
        ledger.giveBack(taken, ONE, atUs, true);
        ledger.end(taken, atUs, undefined);
        expect([1, maxCost(spec)].map((cost) => ledger.readyAt(slot, units(cost), atUs))).toEqual(before);
      }),
      seeded(200),
    );
  });
});

describe("the bucket of a start that was never sent", () => {
  it("gets all of it back when no other came after it", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", burst: 2 });
    const taken = ledger.take(slot, units(2), 0);
    ledger.giveBack(taken, units(2), 0, true);
    expect([ledger.owedAt(slot, 0), ledger.readyAt(slot, units(2), 0)]).toEqual([0, 0]);
  });

  it("gets nothing back when those after it would have filled it without that start", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", burst: 2 });
    const taken = ledger.take(slot, ONE, 0);
    // The bucket is full again, so these two could have come without the first.
    ledger.take(slot, units(2), second);
    ledger.giveBack(taken, ONE, second, true);
    expect(ledger.readyAt(slot, ONE, second)).toBe(2 * second);
  });

  it("gets back what those after it leave, and no more", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", burst: 5 });
    const taken = ledger.take(slot, units(3), 0);
    ledger.take(slot, units(2), 0);
    ledger.giveBack(taken, units(3), 0, true);
    expect([ledger.readyAt(slot, units(3), 0), ledger.readyAt(slot, units(4), 0)]).toEqual([0, second]);
  });

  it("never lets the starts that remain exceed the bucket", () => {
    const anyRate = fc.record({
      rate: fc.record({
        count: fc.integer({ min: 1, max: 9 }),
        perUs: fc.integer({ min: 1, max: 3 * second }),
        burst: fc.integer({ min: 1, max: 6 }),
      }),
    });
    fc.assert(
      fc.property(anyRate, fc.array(anyStep, { maxLength: 50 }), (spec, steps) => {
        const { made } = play(spec, steps);
        expect(specViolation(traceOf(made), spec)).toBeUndefined();
      }),
      seeded(300),
    );
  });
});

describe("the gap of a start that was never sent", () => {
  it("goes back to the start before it, when no other came after it", () => {
    const { ledger, slot } = oneKey({ minDelay: 1_000 });
    ledger.take(slot, ONE, 0);
    const last = ledger.take(slot, ONE, 5 * second);
    ledger.giveBack(last, ONE, 5 * second + 10, true);
    expect([ledger.lastUs(slot), ledger.readyAt(slot, ONE, 5 * second + 10)]).toEqual([0, 5 * second + 10]);
  });

  it("stays when another came after it", () => {
    const { ledger, slot } = oneKey({ minDelay: 1_000 });
    const first = ledger.take(slot, ONE, 0);
    ledger.take(slot, ONE, second);
    ledger.giveBack(first, ONE, second + 10, true);
    expect(ledger.readyAt(slot, ONE, second + 10)).toBe(2 * second);
  });

  it.each([
    { title: "before it", recordedUs: 960_000 },
    { title: "at the same instant", recordedUs: second },
  ])("is not forgotten for another start that was recorded $title", ({ recordedUs }) => {
    const { ledger, slot } = oneKey({ minDelay: 100 });
    const taken = ledger.take(slot, ONE, second);
    ledger.record(slot, ONE, recordedUs, second);
    ledger.giveBack(taken, ONE, second, true);
    ledger.end(taken, second, undefined);
    expect(ledger.readyAt(slot, ONE, second)).toBeGreaterThanOrEqual(recordedUs + 100_000);
    expect(ledger.readyAt(slot, ONE, second)).toBeLessThanOrEqual(second + 100_000);
  });

  it("goes back only when no other came after it, also where the count of units taken passes 2^32", () => {
    const heavy = units(10_000_000);
    const { ledger, slot } = oneKey({ minDelay: 100, rate: "10000000/s", burst: 20_000_000 });
    for (let index = 0; index < 428; index += 1) ledger.record(slot, heavy, index * second, index * second);
    const atUs = 500 * second;
    const before = ledger.take(slot, heavy, atUs);
    // 2^32 is a little less than 430 times this cost.
    const after = ledger.take(slot, heavy, atUs + 100_000);
    expect(after.unitsAfter).toBeLessThan(before.unitsAfter);
    ledger.giveBack(before, heavy, atUs + 100_000, true);
    expect(ledger.readyAt(slot, ONE, atUs + 100_000)).toBe(atUs + 200_000);
    expect(ledger.rateAt(slot, heavy)).toBe(atUs + 100_000);
    ledger.giveBack(after, heavy, atUs + 100_000, true);
    expect(ledger.readyAt(slot, units(20_000_000), atUs + 100_000)).toBe(atUs + 100_000);
  });

  it("stays when only a part of its cost was not used", () => {
    const { ledger, slot } = oneKey({ minDelay: 1_000, window: "9/min" });
    const taken = ledger.take(slot, units(3), 0);
    ledger.giveBack(taken, units(2), 10, false);
    expect([ledger.readyAt(slot, ONE, 10), ledger.windowUsed(slot, 0, 10)]).toEqual([second, 1]);
  });
});

describe("a start that cost more than was said", () => {
  it("is owed on top: by bucket, window and quota", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", burst: 5, window: "9/min", quota: { count: 20, per: "hour" } });
    const taken = ledger.take(slot, units(2), 0);
    ledger.giveBack(taken, units(-6), 0, false);
    expect(ledger.windowUsed(slot, 0, 0)).toBe(8);
    expect(ledger.owedAt(slot, 0)).toBe(8 * second);
    expect(ledger.rateAt(slot, ONE)).toBe(4 * second);
    expect(ledger.quotas.readyAt(slot, { count: 20, per: "hour", timeZone: "UTC" }, 13, 0)).toBe(3_600 * second);
  });

  it("can make the next one wait, and no number runs over", () => {
    const { ledger, slot } = oneKey({ rate: "1/day", burst: 2, window: "9/min" });
    const taken = ledger.take(slot, ONE, 0);
    ledger.giveBack(taken, units(-1_000_000_000), 0, false);
    expect(ledger.owedAt(slot, 0)).toBe(Number.MAX_SAFE_INTEGER);
    expect(ledger.windowAt(slot, 0, ONE, 0)).toBe(60 * second);
  });
});

describe("a quota given back", () => {
  it("is in the period it was spent in, or nowhere", () => {
    const { ledger, slot, wall } = oneKey({ quota: { count: 5, per: "hour" } });
    const quota = { count: 5, per: "hour", timeZone: "UTC" } as const;
    const [one, two] = [ledger.take(slot, units(2), 0), ledger.take(slot, units(2), 0)];
    ledger.giveBack(one, units(2), 5, true);
    expect(ledger.quotas.used(slot, quota)).toBe(2);
    wall.ms = 3_600_000;
    ledger.take(slot, ONE, 10);
    ledger.giveBack(two, units(2), 15, true);
    expect(ledger.quotas.used(slot, quota)).toBe(1);
  });
});
