import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Deadlines } from "../../src/scheduler/deadlines.js";
import { Terms } from "../../src/scheduler/lane.js";
import { seeded } from "../laws/seeded.js";
import { laneOf, stopWaiting, waitingTerms } from "./waiters.js";

const never = Number.POSITIVE_INFINITY;

describe("deadlines", () => {
  it("are none at first, and none of those who wait for ever", () => {
    const deadlines = new Deadlines();
    const patient = waitingTerms(laneOf("a"), never);
    deadlines.add(undefined);
    deadlines.add(patient);
    deadlines.leave(undefined);
    deadlines.leave(patient);
    expect([deadlines.nextUs, deadlines.due(1e15), patient.position]).toEqual([never, undefined, -1]);
  });

  it("come soonest first, each at its instant and not before", () => {
    const deadlines = new Deadlines();
    const lane = laneOf("a");
    const all = [300, 100, 200].map((deadlineUs) => waitingTerms(lane, deadlineUs));
    for (const terms of all) deadlines.add(terms);
    expect([deadlines.nextUs, deadlines.due(99)]).toEqual([100, undefined]);
    for (const terms of [all[1], all[2], all[0]]) {
      expect(deadlines.due(terms.deadlineUs - 1)).toBeUndefined();
      expect(deadlines.due(terms.deadlineUs)).toBe(terms);
      stopWaiting(terms);
      deadlines.leave(terms);
    }
    expect([deadlines.nextUs, deadlines.due(1e15)]).toEqual([never, undefined]);
  });

  it("are counted once for somebody who is added twice", () => {
    const deadlines = new Deadlines();
    const terms = waitingTerms(laneOf("a"), 100);
    deadlines.add(terms);
    deadlines.add(terms);
    stopWaiting(terms);
    deadlines.leave(terms);
    expect(deadlines.nextUs).toBe(never);
  });

  it("of those who are done are let go when more than half of them are", () => {
    const deadlines = new Deadlines();
    const lane = laneOf("a");
    // The first stays, so that those who are done are never at the top.
    const all = Array.from({ length: 1_000 }, (_, index) => waitingTerms(lane, index));
    for (const terms of all) deadlines.add(terms);
    const kept = (): number => all.filter(({ position }) => position >= 0).length;
    const leave = (from: number, to: number): void => {
      for (const terms of all.slice(from, to)) {
        stopWaiting(terms);
        deadlines.leave(terms);
      }
    };
    leave(500, 1_000);
    expect(kept()).toBe(1_000);
    leave(499, 500);
    expect(kept()).toBe(499);
    leave(1, 499);
    expect(kept()).toBeLessThanOrEqual(3);
    expect(deadlines.nextUs).toBe(0);
  });

  it("say the same as a list, and remember at most twice as many as wait", () => {
    const anyStep = fc.record({ deadlineUs: fc.nat({ max: 500 }), pick: fc.nat(), isLeaving: fc.boolean() });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 100 }), (steps) => {
        const deadlines = new Deadlines();
        const lane = laneOf("a");
        const all: Terms[] = [];
        let present: Terms[] = [];
        for (const { deadlineUs, pick, isLeaving } of steps) {
          if (!isLeaving || present.length === 0) {
            const terms = waitingTerms(lane, deadlineUs);
            deadlines.add(terms);
            all.push(terms);
            present.push(terms);
          } else {
            const gone = present[pick % present.length];
            stopWaiting(gone);
            deadlines.leave(gone);
            present = present.filter((terms) => terms !== gone);
          }
          const remembered = all.filter(({ position }) => position >= 0).length;
          expect(remembered).toBeLessThanOrEqual(2 * present.length);
          if (pick % 2 === 0) continue;
          const nextUs = Math.min(never, ...present.map((terms) => terms.deadlineUs));
          expect(deadlines.nextUs).toBe(nextUs);
          expect(deadlines.due(nextUs - 1)).toBeUndefined();
          expect(deadlines.due(nextUs)?.deadlineUs).toBe(present.length === 0 ? undefined : nextUs);
        }
      }),
      seeded(200),
    );
  });

  it("know nobody whose waiter is not there yet", () => {
    const deadlines = new Deadlines();
    deadlines.add(new Terms(5, undefined, true));
    expect(deadlines.nextUs).toBe(never);
  });
});
