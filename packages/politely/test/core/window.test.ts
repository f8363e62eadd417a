import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WindowRule } from "../../src/core/rule.js";
import {
  windowAdjust,
  windowAppend,
  windowCapacity,
  windowClear,
  windowCountedAt,
  windowLivePairs,
  windowMove,
  windowReadyAt,
  windowUsed,
  windowWords,
} from "../../src/shared/window.js";
import { seeded } from "../laws/seeded.js";
import { windowViolation } from "../oracle/violations.js";
import { NaiveWindow } from "./naiveWindow.js";

const second = 1_000_000;
const fence = -77;

/** One ring in a block of its own, with a fence on both sides that nobody may write over. */
class Ring {
  #memory: Float64Array;
  readonly #at = 3;

  constructor(
    readonly rule: WindowRule,
    capacity: number,
  ) {
    this.#memory = this.#block(capacity);
  }

  get capacity(): number {
    return windowCapacity(this.#memory, this.#at);
  }

  get livePairs(): number {
    return windowLivePairs(this.#memory, this.#at);
  }

  get isFenced(): boolean {
    const { length } = this.#memory;
    return [0, 1, 2, length - 3, length - 2, length - 1].every((index) => this.#memory[index] === fence);
  }

  used(nowUs: number): number {
    return windowUsed(this.#memory, this.#at, this.rule, nowUs);
  }

  readyAt(nowUs: number, cost = 1, pending = 0): number {
    return windowReadyAt(this.#memory, this.#at, this.rule, nowUs, cost, pending);
  }

  append(startUs: number, units = 1): boolean {
    return windowAppend(this.#memory, this.#at, this.rule, windowCountedAt(this.rule, startUs), units);
  }

  adjust(startUs: number, change: number, nowUs = startUs): void {
    windowAdjust(this.#memory, this.#at, this.rule, startUs, change, nowUs);
  }

  /** Moves into a block of another size; the pairs kept. */
  move(capacity: number): number {
    const block = this.#block(capacity);
    const kept = windowMove(this.#memory, this.#at, block, this.#at);
    this.#memory = block;
    return kept;
  }

  #block(capacity: number): Float64Array {
    const block = new Float64Array(windowWords(capacity) + 6).fill(fence);
    windowClear(block, this.#at, capacity);
    return block;
  }
}

type Row = readonly [atMs: number, answer: "granted" | number, cost?: number];

/** Asks for one unit per row (or `cost`), takes it when it is granted, and compares, naming the row that differs. */
function play(rule: WindowRule, rows: readonly Row[]): void {
  const ring = new Ring(rule, 64);
  rows.forEach(([atMs, answer, cost = 1], index) => {
    const readyUs = ring.readyAt(atMs * 1000, cost);
    const isGranted = readyUs <= atMs * 1000;
    if (isGranted) ring.append(atMs * 1000, cost);
    expect(isGranted ? "granted" : readyUs / 1000, `row ${index}, at ${atMs} ms`).toBe(answer);
  });
}

const threePerSecond: WindowRule = { count: 3, perUs: second, grainUs: 1 };

describe("a window over time", () => {
  it("grants its count, then each unit exactly when an older one leaves", () => {
    play(threePerSecond, [
      [0, "granted"],
      [400, "granted"],
      [900, "granted"],
      [900, 1000],
      [999.999, 1000],
      [1000, "granted"],
      [1000, 1400],
      [1400, "granted"],
    ]);
  });

  it("does not let a call at its edge open a second helping", () => {
    play(threePerSecond, [
      [0, "granted"],
      [900, "granted", 2],
      [1000, "granted"],
      [1000, 1900],
      [1899, 1900],
      [1900, "granted", 2],
      [1900, 2000],
    ]);
  });

  it("lets a heavy request wait until enough has left, and refuses nothing for having asked", () => {
    play(threePerSecond, [
      [0, "granted"],
      [100, "granted"],
      [200, "granted"],
      [200, 1100, 2],
      [200, 1200, 3],
      [1000, 1200, 3],
      [1100, "granted", 2],
    ]);
  });

  it("of one start a day is a gap of a day", () => {
    const day = 86_400_000;
    play({ count: 1, perUs: day * 1000, grainUs: 1 }, [
      [5, "granted"],
      [day, day + 5],
      [day + 5, "granted"],
    ]);
  });

  it("counts units in flight that have no instant yet, and waits for an answer when they take all the room", () => {
    const ring = new Ring(threePerSecond, 4);
    ring.append(0);
    expect(ring.readyAt(10, 1, 1)).toBe(10);
    expect(ring.readyAt(10, 1, 2)).toBe(second);
    expect(ring.readyAt(10, 2, 2)).toBe(Number.POSITIVE_INFINITY);
    expect(ring.readyAt(10, 1, 3)).toBe(Number.POSITIVE_INFINITY);
  });

  it("counts a start that lies before the newest one as late as the newest", () => {
    const ring = new Ring(threePerSecond, 4);
    ring.append(500);
    ring.append(200, 2);
    expect(ring.readyAt(600, 1)).toBe(500 + second);
    expect(ring.used(200 + second)).toBe(3);
  });
});

describe("what was counted", () => {
  it("can be returned in the middle, at the end, in part, and when it has left", () => {
    const ring = new Ring(threePerSecond, 4);
    for (const atUs of [0, 100, 200]) ring.append(atUs);
    ring.adjust(100, -1);
    expect([ring.used(300), ring.livePairs, ring.readyAt(300)]).toEqual([2, 2, 300]);
    ring.adjust(200, -1);
    ring.append(300, 2);
    ring.adjust(300, -1);
    expect(ring.used(300)).toBe(2);
    ring.adjust(0, -5);
    expect(ring.used(300)).toBe(1);
    expect(ring.used(300 + second)).toBe(0);
    ring.adjust(300, -1, 300 + second);
    ring.adjust(12_345, -1);
    expect(ring.used(300 + second)).toBe(0);
  });

  it("is not taken from a later start once it has left, whether or not anybody has looked since", () => {
    const ring = new Ring(threePerSecond, 4);
    ring.append(0);
    ring.append(second - 1, 2);
    ring.adjust(0, -1, second);
    expect(ring.used(second)).toBe(2);
    ring.adjust(0, -1, second);
    expect(ring.used(second)).toBe(2);
  });

  it("is found in the later start that took it in", () => {
    const ring = new Ring(threePerSecond, 4);
    ring.append(500);
    ring.append(200, 2);
    ring.adjust(200, -2, 600);
    expect([ring.used(600), ring.used(500 + second)]).toEqual([1, 0]);
  });

  it("can be more than was said, even beyond the count", () => {
    const ring = new Ring(threePerSecond, 4);
    ring.append(0);
    ring.append(100);
    ring.adjust(0, 6);
    expect([ring.used(200), ring.readyAt(200)]).toEqual([8, second]);
    ring.adjust(100, 6);
    expect(ring.readyAt(200)).toBe(100 + second);
  });

  it("moves to another block as it was, without pairs that were returned", () => {
    const ring = new Ring({ ...threePerSecond, count: 8 }, 4);
    // Turn the ring a little, so that it wraps around the end of its block.
    for (const atUs of [0, 1]) ring.append(atUs);
    expect(ring.used(second + 1)).toBe(0);
    for (const us of [10, 20, 30, 40]) ring.append(second + us, 2);
    expect(ring.append(second + 50)).toBe(false);
    ring.adjust(second + 20, -2);
    expect(ring.move(8)).toBe(3);
    expect([ring.capacity, ring.livePairs, ring.used(second + 50)]).toEqual([8, 3, 6]);
    expect(ring.append(second + 50)).toBe(true);
    expect(ring.used(2 * second + 30)).toBe(3);
  });
});

describe("a grouped window", () => {
  const grouped: WindowRule = { count: 5_000, perUs: 1_024_000, grainUs: 1_000 };

  it.each([
    [0, 0],
    [1, 1_000],
    [1_000, 1_000],
    [1_001, 2_000],
    [7_999_999, 8_000_000],
  ])("counts a start at %s µs as if at %s", (startUs, countedUs) => {
    expect(windowCountedAt(grouped, startUs)).toBe(countedUs);
    expect(windowCountedAt(threePerSecond, startUs)).toBe(startUs);
  });

  it("keeps at most one pair for each grain", () => {
    const ring = new Ring(grouped, 2_048);
    for (let atUs = 0; atUs < 1_024_000; atUs += 250) ring.append(atUs);
    expect(ring.used(1_023_999)).toBe(4_096);
    expect(ring.livePairs).toBe(1_025);
  });

  it("never holds more than its count in an interval, and gives room back less than a grain late", () => {
    const anyAsk = fc.record({ pauseUs: fc.integer({ min: 0, max: 3_000 }), cost: fc.integer({ min: 1, max: 4 }) });
    const rule: WindowRule = { count: 9, perUs: 10_000, grainUs: 700 };
    fc.assert(
      fc.property(fc.array(anyAsk, { maxLength: 60 }), (asks) => {
        const ring = new Ring(rule, 64);
        const exact = new NaiveWindow({ ...rule, grainUs: 1 });
        const starts: { atUs: number; cost: number }[] = [];
        let nowUs = 0;
        for (const { pauseUs, cost } of asks) {
          nowUs += pauseUs;
          const readyUs = ring.readyAt(nowUs, cost);
          expect(readyUs - exact.readyAt(nowUs, cost, 0)).toBeLessThan(rule.grainUs);
          if (readyUs > nowUs) continue;
          ring.append(nowUs, cost);
          exact.append(nowUs, cost);
          starts.push({ atUs: nowUs, cost });
        }
        expect(windowViolation(starts, rule)).toBeUndefined();
      }),
      seeded(150),
    );
  });
});

describe("starts beyond the count", () => {
  it("take no more room than twice the count, and block exactly as long as they would in full", () => {
    const ring = new Ring(threePerSecond, 8);
    const naive = new NaiveWindow(threePerSecond);
    for (let index = 0; index < 600; index += 1) {
      const nowUs = index * 10;
      expect(ring.append(nowUs)).toBe(true);
      naive.append(nowUs, 1);
      if (index % 50 === 0) expect(ring.readyAt(nowUs, 2)).toBe(naive.readyAt(nowUs, 2, 0));
    }
    expect(ring.capacity).toBe(8);
    expect(ring.used(6_000)).toBeLessThanOrEqual(2 * 3 + 1);
  });

  it("still block when the count of the newest ones is returned after the last of them was made", () => {
    const ring = new Ring(threePerSecond, 8);
    for (let index = 0; index < 20; index += 1) ring.append(index);
    for (const atUs of [17, 18, 19]) ring.adjust(atUs, -1);
    expect(ring.readyAt(20)).toBe(14 + second);
  });

  it("block as they would in full after up to the count of them are returned", () => {
    const anyStart = fc.record({
      pauseUs: fc.integer({ min: 0, max: 300_000 }),
      units: fc.integer({ min: 1, max: 3 }),
      isReturned: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyStart, { maxLength: 50 }), (starts) => {
        const rule = { ...threePerSecond, count: 5 };
        const ring = new Ring(rule, 16);
        const naive = new NaiveWindow(rule);
        let [nowUs, returnable] = [0, rule.count];
        for (const { pauseUs, units, isReturned } of starts) {
          nowUs += pauseUs;
          expect(ring.append(nowUs, units)).toBe(true);
          naive.append(nowUs, units);
          if (isReturned && units <= returnable) {
            returnable -= units;
            ring.adjust(nowUs, -units);
            naive.adjust(nowUs, -units);
          }
          expect(ring.readyAt(nowUs, 2)).toBe(naive.readyAt(nowUs, 2, 0));
        }
      }),
      seeded(200),
    );
  });
});

describe("any window", () => {
  const anyRule = fc.record({
    count: fc.integer({ min: 1, max: 9 }),
    perUs: fc.integer({ min: 50, max: 1_000 }),
    grainUs: fc.constantFrom(1, 1, 7),
  });
  const anyStep = fc.record({
    kind: fc.constantFrom("take", "take", "take", "adjust", "look"),
    pauseUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 200 })),
    cost: fc.integer({ min: 1, max: 9 }),
    pending: fc.constantFrom(0, 0, 1, 5),
    pick: fc.nat(),
  });

  it("says the same as a list of all its starts, through growth, returns and corrections", () => {
    fc.assert(
      fc.property(anyRule, fc.array(anyStep, { maxLength: 80 }), (rule, steps) => {
        const ring = new Ring(rule, 1);
        const naive = new NaiveWindow(rule);
        const open: { atUs: number; units: number }[] = [];
        let nowUs = 0;
        for (const { kind, pauseUs, cost, pending, pick } of steps) {
          nowUs += pauseUs;
          const units = Math.min(cost, rule.count);
          expect(ring.used(nowUs)).toBe(naive.used(nowUs));
          expect(ring.readyAt(nowUs, units, pending)).toBe(naive.readyAt(nowUs, units, pending));
          if (kind === "adjust" && open.length > 0) {
            // A start is corrected once: returned whole or in part, or found to have cost more.
            const [start] = open.splice(pick % open.length, 1);
            const change = (pick % (start.units + 3)) - start.units;
            ring.adjust(start.atUs, change, nowUs);
            if (naive.countedAt(start.atUs) + rule.perUs > nowUs) naive.adjust(start.atUs, change);
          } else if (kind === "take" && naive.readyAt(nowUs, units, 0) <= nowUs) {
            if (!ring.append(nowUs, units)) {
              ring.move(ring.capacity * 2);
              expect(ring.append(nowUs, units)).toBe(true);
            }
            naive.append(nowUs, units);
            open.push({ atUs: nowUs, units });
          }
        }
        expect(ring.isFenced).toBe(true);
      }),
      seeded(400),
    );
  });
});
