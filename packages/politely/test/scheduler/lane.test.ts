import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ONE } from "../../src/scheduler/cost.js";
import { costAt, isLaneBefore, type Lane, type Waiter } from "../../src/scheduler/lane.js";
import { seeded } from "../laws/seeded.js";
import { laneOf, waiterAt } from "./waiters.js";

const ageingUs = 10_000_000;

/** Lets everybody start, and says in what order, by their numbers. */
function drain(lane: Lane): number[] {
  const order: number[] = [];
  for (let head = lane.head; head !== undefined; head = lane.head) {
    order.push(head.sequence);
    lane.remove(head);
  }
  return order;
}

describe("a lane", () => {
  it("is empty at first, of priority 0", () => {
    const lane = laneOf("a.example");
    expect([lane.size, lane.head, lane.headPriority, lane.everybody()]).toEqual([0, undefined, 0, []]);
  });

  it("serves equals in order of arrival", () => {
    const lane = laneOf("a.example");
    for (let sequence = 0; sequence < 5; sequence += 1) lane.add(waiterAt(7, sequence), 0);
    expect(drain(lane)).toEqual([0, 1, 2, 3, 4]);
  });

  it.each([
    { title: "higher before lower", first: [0, 0], second: [0, 1], order: [1, 0] },
    { title: "one point is worth one ageing", first: [0, 0], second: [ageingUs - 1, 1], order: [1, 0] },
    {
      title: "who waited one ageing longer comes first, being first",
      first: [0, 0],
      second: [ageingUs, 1],
      order: [0, 1],
    },
    { title: "who waited longer than that comes first", first: [0, 0], second: [ageingUs + 1, 1], order: [0, 1] },
    { title: "negative priorities age too", first: [0, -2], second: [2 * ageingUs + 1, 0], order: [0, 1] },
  ])("orders by priority and the time waited: $title", ({ first, second, order }) => {
    const lane = laneOf("a.example");
    lane.add(waiterAt(first[0], 0), first[1]);
    lane.add(waiterAt(second[0], 1), second[1]);
    expect(drain(lane)).toEqual(order);
  });

  it("keeps its order when somebody leaves from the front, the middle or the end", () => {
    const lane = laneOf("a.example");
    const waiters = [0, 1, 2, 3, 4, 5].map((sequence) => waiterAt(sequence, sequence));
    for (const waiter of waiters) lane.add(waiter, 0);
    for (const gone of [0, 3, 5]) lane.remove(waiters[gone]);
    lane.remove(waiters[3]);
    expect([lane.size, drain(lane)]).toEqual([3, [1, 2, 4]]);
  });

  it("serves the greatest of priority + waited / ageing, whoever comes and goes", () => {
    const anyStep = fc.record({
      pauseUs: fc.constantFrom(0, 0, 1, 3_000_000, ageingUs),
      priority: fc.integer({ min: -2, max: 2 }),
      leaves: fc.option(fc.nat(), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 50 }), (steps) => {
        const lane = laneOf("a.example");
        let present: { waiter: Waiter; priority: number }[] = [];
        let nowUs = 0;
        steps.forEach(({ pauseUs, priority, leaves }, sequence) => {
          nowUs += pauseUs;
          const waiter = waiterAt(nowUs, sequence);
          lane.add(waiter, priority);
          present.push({ waiter, priority });
          if (leaves !== undefined) {
            const gone = leaves % 3 === 0 ? lane.head : present[leaves % present.length].waiter;
            if (gone !== undefined) lane.remove(gone);
            present = present.filter((each) => each.waiter !== gone);
          }
          expect(lane.size).toBe(present.length);
          expect(new Set(lane.everybody())).toEqual(new Set(present.map((each) => each.waiter)));
        });
        const worth = (each: (typeof present)[number]): number =>
          each.priority * ageingUs + nowUs - each.waiter.askedUs;
        const order = present.sort((a, b) => worth(b) - worth(a) || a.waiter.sequence - b.waiter.sequence);
        expect(drain(lane)).toEqual(order.map((each) => each.waiter.sequence));
      }),
      seeded(200),
    );
  });
});

describe("the turn of a lane", () => {
  it("came never, before anybody started or waits", () => {
    const lane = laneOf("a.example");
    expect([lane.turnUs, lane.turnSequence]).toEqual([Number.NEGATIVE_INFINITY, 0]);
  });

  it("came with the first of those who wait, of whatever priority", () => {
    const lane = laneOf("a.example");
    lane.add(waiterAt(5, 3), -1);
    lane.add(waiterAt(5, 4), 2);
    lane.add(waiterAt(9, 7), 0);
    expect([lane.turnUs, lane.turnSequence]).toEqual([5, 3]);
  });

  it("came at its last start, when that was after the first of those who wait came", () => {
    const lane = laneOf("a.example");
    lane.add(waiterAt(5, 3), 0);
    Object.assign(lane, { startUs: 8, startSequence: 6 });
    expect([lane.turnUs, lane.turnSequence]).toEqual([8, 6]);
  });

  it("came with the first of those who wait, when nobody has started since", () => {
    const lane = laneOf("a.example");
    Object.assign(lane, { startUs: 8, startSequence: 6 });
    lane.add(waiterAt(9, 7), 0);
    expect([lane.turnUs, lane.turnSequence]).toEqual([9, 7]);
  });

  it("is not that of somebody who has left", () => {
    const lane = laneOf("a.example");
    const [first, second, third] = [waiterAt(5, 3), waiterAt(6, 4), waiterAt(7, 5)];
    lane.add(first, 0);
    lane.add(second, 1);
    lane.add(third, 0);
    lane.remove(first);
    expect([lane.turnUs, lane.turnSequence]).toEqual([6, 4]);
    lane.remove(second);
    expect([lane.turnUs, lane.turnSequence]).toEqual([7, 5]);
    lane.remove(third);
    expect([lane.turnUs, lane.turnSequence]).toEqual([Number.NEGATIVE_INFINITY, 0]);
  });

  it("is that of the first of those who are left, whoever comes and goes with whatever priority", () => {
    const anyStep = fc.record({
      priority: fc.integer({ min: -3, max: 3 }),
      leaving: fc.array(fc.nat(), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
        const lane = laneOf("a.example");
        const present: Waiter[] = [];
        steps.forEach(({ priority, leaving }, index) => {
          const waiter = waiterAt(10 * index, index + 1);
          lane.add(waiter, priority);
          present.push(waiter);
          for (const pick of leaving.slice(0, present.length)) {
            for (const gone of present.splice(pick % present.length, 1)) lane.remove(gone);
            const [first] = present;
            const turn = first === undefined ? [Number.NEGATIVE_INFINITY, 0] : [first.askedUs, first.sequence];
            expect([lane.turnUs, lane.turnSequence]).toEqual(turn);
          }
        });
      }),
      seeded(200),
    );
  });

  it("is found without looking at everybody, however many priorities there are", () => {
    const count = 4096;
    const lane = laneOf("a.example");
    let reads = 0;
    let latest = 0;
    const waiters = Array.from({ length: count }, (_, index) => {
      const waiter = waiterAt(index, index + 1);
      const sequence = (): number => {
        reads += 1;
        return index + 1;
      };
      return Object.defineProperty(waiter, "sequence", { get: sequence });
    });
    for (const [index, waiter] of waiters.entries()) lane.add(waiter, index / count);
    for (const waiter of waiters.slice(0, -1)) {
      lane.remove(waiter);
      latest = lane.turnSequence;
    }
    expect(latest).toBe(count);
    // A heap of 4,096 is 12 deep.
    expect(reads / count).toBeLessThan(100);
  });
});

describe("lanes that meet at a key", () => {
  /** A lane in which one waits, who asked at `askedUs` as the event of that number. */
  function laneWith({ askedUs = 0, sequence = 0, priority = 0 }): Lane {
    const lane = laneOf("a.example", { ageingUs });
    lane.add(waiterAt(askedUs, sequence), priority);
    return lane;
  }

  it("take turns: the one whose last turn is longest ago goes first", () => {
    const [early, late] = [laneWith({ askedUs: 5, sequence: 2 }), laneWith({ askedUs: 6, sequence: 1 })];
    expect([isLaneBefore(early, late), isLaneBefore(late, early)]).toEqual([true, false]);
    // Who has just started goes behind the other.
    Object.assign(early, { startUs: 7, startSequence: 3 });
    expect([isLaneBefore(early, late), isLaneBefore(late, early)]).toEqual([false, true]);
  });

  it("go by the number of the turn when both were at one instant", () => {
    const [one, two] = [laneWith({ sequence: 1 }), laneWith({ sequence: 2 })];
    expect([isLaneBefore(one, two), isLaneBefore(two, one)]).toEqual([true, false]);
    Object.assign(one, { startUs: 0, startSequence: 3 });
    expect([isLaneBefore(one, two), isLaneBefore(two, one)]).toEqual([false, true]);
  });

  it("count a point of their head's priority as one ageing", () => {
    const plain = laneWith({});
    const urgent = laneWith({ askedUs: ageingUs - 1, sequence: 1, priority: 1 });
    expect([urgent.orderUs, isLaneBefore(urgent, plain)]).toEqual([-1, true]);
    urgent.startUs = ageingUs + 1;
    expect([urgent.orderUs, isLaneBefore(urgent, plain)]).toEqual([1, false]);
  });
});

describe("the cost of a lane", () => {
  it("is one for all its keys, or one for each", () => {
    const heavy = { rate: 2, window: 3, quota: 4 };
    expect([costAt(ONE, 0), costAt(ONE, 5)]).toEqual([ONE, ONE]);
    expect([costAt([ONE, heavy], 0), costAt([ONE, heavy], 1)]).toEqual([ONE, heavy]);
  });
});
