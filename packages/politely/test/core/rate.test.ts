import fc, { type Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import { owedAt, owedUnder } from "../../src/core/limits/rate.js";
import { seeded } from "../laws/seeded.js";
import { bucketViolation } from "../oracle/violations.js";
import { Bucket, type BucketNumbers, owedWithout, readyOf } from "./bucket.js";

type Row = readonly [atMs: number, answer: "granted" | number, cost?: number];

/** Spends one unit per row (or `cost` of them) and compares each answer, naming the row that differs. */
function play(numbers: BucketNumbers, rows: readonly Row[]): void {
  const bucket = new Bucket(numbers);
  rows.forEach(([atMs, answer, cost = 1], index) => {
    const nowUs = atMs * 1000;
    const readyUs = bucket.readyAt(cost);
    if (readyUs <= nowUs) bucket.take(nowUs, cost);
    expect(readyUs <= nowUs ? "granted" : readyUs / 1000, `row ${index}, at ${atMs} ms`).toBe(answer);
  });
}

const second = 1_000_000;
const twoPerSecond: BucketNumbers = { count: 2, perUs: second, burst: 2 };

const anyNumbers: Arbitrary<BucketNumbers> = fc.record({
  count: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000_000 })),
  perUs: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 3_600_000_000 })),
  burst: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 1_000 })),
});

/** How far time goes on before a spend, as a share of the time the whole bucket takes to refill; or to the promised instant. */
const anyPause = fc.oneof(fc.constant("ready" as const), fc.constant(0), fc.double({ min: 0, max: 0.3, noNaN: true }));
const anySpend = fc.record({ pause: anyPause, share: fc.double({ min: 0, max: 1, noNaN: true }) });

function costOf({ burst }: BucketNumbers, share: number): number {
  return 1 + Math.floor(share * (burst - 1));
}

function later(bucket: Bucket, pause: number | "ready", cost: number, nowUs: number): number {
  const { burst, perUs, count } = bucket.numbers;
  if (pause === "ready") return Math.max(nowUs, bucket.readyAt(cost));
  return nowUs + Math.floor((pause * burst * perUs) / count);
}

describe("a bucket over time", () => {
  it("grants the burst at once, then one unit each 500 ms", () => {
    play(twoPerSecond, [
      [0, "granted"],
      [0, "granted"],
      [0, 500],
      [499, 500],
      [500, "granted"],
      [500, 1000],
      [999.999, 1000],
      [1000, "granted"],
    ]);
  });

  it("is full after idle time, and not fuller", () => {
    play(twoPerSecond, [
      [0, "granted", 2],
      [100_000, "granted", 2],
      [100_000, 100_500],
    ]);
  });

  it("lets a heavy request wait for all its units, and a light one pass meanwhile", () => {
    play({ count: 1, perUs: second, burst: 5 }, [
      [0, "granted", 3],
      [0, 1000, 3],
      [0, "granted", 2],
      [0, 3000, 3],
      [0, 5000, 5],
      [2000, "granted", 2],
    ]);
  });

  it("grants the seventh unit of seven per second in its first second", () => {
    const sevenPerSecond = { count: 7, perUs: second, burst: 7 };
    play(sevenPerSecond, [...Array.from({ length: 7 }, (): Row => [0, "granted"]), [0, 142.858]]);
    // Each is rounded up by less than a microsecond, and that does not add up.
    const two = new Bucket({ ...sevenPerSecond, burst: 2 });
    const starts = Array.from({ length: 9 }, () => two.take(Math.max(0, two.readyAt(1)), 1).atUs);
    expect(starts).toEqual([0, 0, 142_858, 285_715, 428_572, 571_429, 714_286, 857_143, 1_000_000]);
  });

  it("keeps its rate over 70,000 starts, to the microsecond", () => {
    const bucket = new Bucket({ count: 7, perUs: second, burst: 2 });
    for (let index = 0; index < 2 + 70_000; index += 1) bucket.take(Math.max(0, bucket.readyAt(1)), 1);
    expect(bucket.seenUs).toBe(10_000 * second);
  });

  it("keeps two starts of a burst of 1 apart by the whole microsecond above their share", () => {
    const bucket = new Bucket({ count: 7, perUs: second, burst: 1 });
    const starts = Array.from({ length: 4 }, () => bucket.take(Math.max(0, bucket.readyAt(1)), 1).atUs);
    expect(starts).toEqual([0, 142_858, 285_716, 428_574]);
  });

  it("counts a clock that steps back as standing still", () => {
    play(twoPerSecond, [
      [1000, "granted", 2],
      [0, 1500],
      [1400, 1500],
      [1500, "granted"],
    ]);
    expect(owedAt(2, 10, 1000, 400)).toBe(10);
  });

  it("is full before its first start", () => {
    expect(owedAt(2, 0, Number.NEGATIVE_INFINITY, 5)).toBe(0);
    expect(readyOf(2, 0, Number.NEGATIVE_INFINITY, 0)).toBe(Number.NEGATIVE_INFINITY);
  });

  it("owes exactly what is left at the largest numbers it allows", () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(readyOf(1, most, 0, most - 1)).toBe(1);
    expect(readyOf(3, most, 0, 1)).toBe(Number((BigInt(most) - 1n + 2n) / 3n));
    expect(owedAt(1, most, 0, most - 1)).toBe(1);
    expect(owedAt(most, most, 0, 1)).toBe(0);
    expect(owedAt(most, most, 0, most)).toBe(0);
  });

  it("divides exactly, whatever is owed: the instant is enough, and the one before is not", () => {
    const anyDebt = fc.record({
      count: fc.oneof(
        fc.integer({ min: 1, max: 100 }),
        fc.maxSafeNat().map((count) => count + 1),
      ),
      owed: fc.maxSafeNat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(anyDebt, ({ count, owed, share }) => {
        const room = Math.floor(owed * share);
        const at = BigInt(readyOf(count, owed, 0, room));
        const excess = BigInt(owed) - BigInt(room);
        expect(at * BigInt(count)).toBeGreaterThanOrEqual(excess);
        expect(at === 0n || (at - 1n) * BigInt(count) < excess).toBe(true);
      }),
      seeded(2_000),
    );
  });

  it("never grants more than burst + count * t / per in any span, and nothing later than that asks", () => {
    fc.assert(
      fc.property(anyNumbers, fc.array(anySpend, { maxLength: 30 }), (numbers, spends) => {
        const bucket = new Bucket(numbers);
        const rate = { count: numbers.count, perUs: numbers.perUs, burst: numbers.burst };
        let nowUs = 0;
        for (const { pause, share } of spends) {
          const cost = costOf(numbers, share);
          nowUs = later(bucket, pause, cost, nowUs);
          const readyUs = bucket.readyAt(cost);
          if (readyUs > nowUs) {
            const early = [...bucket.starts, { atUs: readyUs - 1, cost }];
            expect(bucketViolation(early, rate), "one microsecond before it is ready").toBeDefined();
          } else bucket.take(nowUs, cost);
        }
        expect(bucketViolation(bucket.starts, rate)).toBeUndefined();
      }),
      seeded(300),
    );
  });
});

describe("a start returned to its bucket", () => {
  it.each([
    { title: "gives all of it back when nothing followed", owed: 100, taken: 40, later: 0, left: 60 },
    { title: "gives back no more than is still owed", owed: 30, taken: 40, later: 0, left: 0 },
    {
      title: "gives all back when those after it owe less than what is left",
      owed: 100,
      taken: 40,
      later: 60,
      left: 60,
    },
    { title: "keeps what those after it may owe alone", owed: 100, taken: 40, later: 80, left: 80 },
    { title: "gives nothing back when those after it may owe everything", owed: 100, taken: 40, later: 300, left: 100 },
    { title: "changes nothing when nothing is owed", owed: 0, taken: 40, later: 40, left: 0 },
  ])("$title", ({ owed, taken, later: after, left }) => {
    expect(owedWithout(owed, taken, after)).toBe(left);
  });

  it("leaves a debt that the starts which remain never exceed the bucket by, whatever is returned and when", () => {
    const anyStep = fc.record({
      pause: anyPause,
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      returned: fc.option(fc.record({ pick: fc.nat(), part: fc.constantFrom(1, 1, 0.5) }), { nil: undefined, freq: 2 }),
    });
    fc.assert(
      fc.property(anyNumbers, fc.array(anyStep, { minLength: 3, maxLength: 30 }), (numbers, steps) => {
        const bucket = new Bucket(numbers);
        let nowUs = 0;
        for (const { pause, share, returned } of steps) {
          const cost = costOf(numbers, share);
          nowUs = later(bucket, pause, cost, nowUs);
          if (returned === undefined || bucket.starts.length === 0) {
            if (bucket.readyAt(cost) <= nowUs) bucket.take(nowUs, cost);
          } else {
            const start = bucket.starts[returned.pick % bucket.starts.length];
            const before = bucket.owedAt(nowUs);
            const units = Math.ceil(start.cost * returned.part);
            bucket.giveBack(start, units, nowUs);
            expect(bucket.owed).toBeLessThanOrEqual(before);
            expect(bucket.owed).toBeGreaterThanOrEqual(before - units * numbers.perUs);
          }
        }
        const rest = bucket.starts.filter(({ cost }) => cost > 0);
        expect(bucketViolation(rest, numbers)).toBeUndefined();
      }),
      seeded(500),
    );
  });

  it("leaves exactly the debt of a bucket it never came to, when it was the last start", () => {
    fc.assert(
      fc.property(
        anyNumbers,
        fc.array(anySpend, { minLength: 1, maxLength: 10 }),
        anyPause,
        (numbers, spends, wait) => {
          const [one, other] = [new Bucket(numbers), new Bucket(numbers)];
          let nowUs = 0;
          spends.forEach(({ pause, share }, index) => {
            const cost = costOf(numbers, share);
            nowUs = Math.max(later(one, pause, cost, nowUs), one.readyAt(cost));
            one.take(nowUs, cost);
            if (index < spends.length - 1) other.take(nowUs, cost);
          });
          nowUs = later(one, wait, 1, nowUs);
          const last = one.starts[one.starts.length - 1];
          one.giveBack(last, last.cost, nowUs);
          expect(one.owedAt(nowUs)).toBe(other.owedAt(nowUs));
        },
      ),
      seeded(200),
    );
  });
});

describe("a debt under other numbers", () => {
  const from = { ratePerUs: 1_000, burst: 4 };

  it.each([
    { title: "stays the same under the same numbers", owed: 2_500, to: from, now: 2_500 },
    {
      title: "is the same number of units when units cost more",
      owed: 2_500,
      to: { ratePerUs: 3_000, burst: 4 },
      now: 7_500,
    },
    { title: "is rounded up", owed: 2_501, to: { ratePerUs: 3, burst: 4 }, now: 8 },
    { title: "grows by what the bucket grew by", owed: 2_500, to: { ratePerUs: 1_000, burst: 6 }, now: 4_500 },
    {
      title: "stays when the bucket shrinks, even above what it holds",
      owed: 3_500,
      to: { ratePerUs: 1_000, burst: 1 },
      now: 3_500,
    },
    { title: "stays nothing, so that a new key is a new key", owed: 0, to: { ratePerUs: 1_000, burst: 9 }, now: 0 },
    {
      title: "stops growing where whole numbers end",
      owed: 1,
      to: { ratePerUs: 2 ** 50, burst: 1_000 },
      now: Number.MAX_SAFE_INTEGER,
    },
  ])("$title", ({ owed, to, now }) => {
    expect(owedUnder(owed, { rateCount: 1, ...from }, { rateCount: 1, ...to })).toBe(now);
  });

  const anyShape = fc.record({
    ratePerUs: fc.integer({ min: 1, max: 1_000_000 }),
    burst: fc.integer({ min: 1, max: 1_000 }),
  });
  const anyChange = fc.record({ from: anyShape, to: anyShape, share: fc.double({ min: 0, max: 1, noNaN: true }) });

  it("never lets anything be spent at once that could not have been before", () => {
    fc.assert(
      fc.property(anyChange, ({ from: before, to, share }) => {
        const owed = 1 + Math.floor(share * (before.burst * before.ratePerUs - 1));
        const unitsBefore = Math.floor((before.burst * before.ratePerUs - owed) / before.ratePerUs);
        const unitsAfter = Math.floor(
          (to.burst * to.ratePerUs - owedUnder(owed, { rateCount: 1, ...before }, { rateCount: 1, ...to })) /
            to.ratePerUs,
        );
        expect(unitsAfter).toBeLessThanOrEqual(unitsBefore);
      }),
      seeded(1_000),
    );
  });

  it("is rounded up exactly where the product is beyond 2^53", () => {
    const [before, to] = [
      { ratePerUs: 253_679, burst: 1 },
      { ratePerUs: 844_502, burst: 1 },
    ];
    // In floating point the quotient comes out whole and one less, which would forgive a little.
    expect(owedUnder(703_172_869_362_581, { rateCount: 1, ...before }, { rateCount: 1, ...to })).toBe(
      2_340_875_257_796_028,
    );
    const anyDebt = fc.record({
      owed: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      from: fc.integer({ min: 1, max: 86_400_000_000 }),
      to: fc.integer({ min: 1, max: 86_400_000_000 }),
    });
    fc.assert(
      fc.property(anyDebt, ({ owed, from: fromUs, to: toUs }) => {
        const exact = (BigInt(owed) * BigInt(toUs) + BigInt(fromUs) - 1n) / BigInt(fromUs);
        const now = owedUnder(
          owed,
          { rateCount: 1, ratePerUs: fromUs, burst: 9 },
          { rateCount: 1, ratePerUs: toUs, burst: 9 },
        );
        const most = BigInt(Number.MAX_SAFE_INTEGER);
        expect(BigInt(now)).toBe(exact < most ? exact : most);
      }),
      seeded(2_000),
    );
  });

  it("is the same number of units, rounded up by less than one unit-microsecond, in exact fractions", () => {
    fc.assert(
      fc.property(anyChange, ({ from: before, to, share }) => {
        const owed = 1 + Math.floor(share * (before.burst * before.ratePerUs - 1));
        const now = BigInt(
          owedUnder(owed, { rateCount: 1, ...before }, { rateCount: 1, ratePerUs: to.ratePerUs, burst: before.burst }),
        );
        const exact = BigInt(owed) * BigInt(to.ratePerUs);
        const per = BigInt(before.ratePerUs);
        expect(now * per).toBeGreaterThanOrEqual(exact);
        expect((now - 1n) * per).toBeLessThan(exact);
      }),
      seeded(1_000),
    );
  });
});
