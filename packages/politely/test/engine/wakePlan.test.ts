import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WakePlan } from "../../src/engine/systemClock.js";
import { seeded } from "../laws/seeded.js";

/** A plan that has learnt that timers call `latencyMs` late. */
function learnt(latencyMs: number, budget = {}): WakePlan {
  const plan = new WakePlan(budget);
  for (let index = 0; index < 200; index += 1) plan.landed(latencyMs);
  return plan;
}

describe("a plan to wake up", () => {
  it("polls for what is shorter than the shortest timer", () => {
    expect(new WakePlan().nextDelayMs(0.4, 0)).toBe(0);
  });

  it("never polls without a budget: one timer, landing at or after the instant", () => {
    const plan = learnt(0.3, { share: 0 });
    expect([0.2, 1, 1.2, 5.6].map((leftMs) => plan.nextDelayMs(leftMs, 0))).toEqual([1, 1, 1, 6]);
  });

  it("sleeps in one piece when that lands close enough", () => {
    expect(learnt(0.3).nextDelayMs(20.3, 0)).toBe(20);
  });

  it("takes a timer that lands late rather than poll, once the budget is spent, and polls again when it has grown back", () => {
    const plan = new WakePlan({ share: 0.1, savedMs: 1 });
    expect(plan.nextDelayMs(0.5, 0)).toBe(0);
    plan.spend(1);
    expect(plan.nextDelayMs(0.5, 0)).toBe(1);
    expect(plan.nextDelayMs(0.5, 4)).toBe(1);
    expect(plan.nextDelayMs(0.5, 6)).toBe(0);
  });

  it("saves up no more than it may", () => {
    const plan = new WakePlan({ share: 0.5, savedMs: 1 });
    plan.nextDelayMs(0.5, 0);
    plan.nextDelayMs(0.5, 1_000_000);
    plan.spend(0.9);
    expect(plan.nextDelayMs(0.5, 1_000_000)).toBe(1);
  });

  it("learns nothing from early calls and stalls", () => {
    const [plan, other] = [learnt(0.3), learnt(0.3)];
    for (let index = 0; index < 500; index += 1) for (const lateMs of [-0.5, 1, 50, Number.NaN]) other.landed(lateMs);
    const waits = Array.from({ length: 300 }, (_, index) => 0.1 * (index + 1));
    expect(waits.map((leftMs) => other.nextDelayMs(leftMs, 0))).toEqual(
      waits.map((leftMs) => plan.nextDelayMs(leftMs, 0)),
    );
  });

  it("asks for whole milliseconds, never more than the platform takes", () => {
    const anyWait = fc.oneof(
      fc.double({ min: 1e-6, max: 100, noNaN: true }),
      fc.double({ min: 1, max: 1e13, noNaN: true }),
    );
    const anyPlan = fc.record({
      latencyMs: fc.double({ min: 0, max: 0.99, noNaN: true }),
      share: fc.constantFrom(0, 0.03, 1),
      spentMs: fc.double({ min: 0, max: 10, noNaN: true }),
    });
    fc.assert(
      fc.property(anyPlan, anyWait, ({ latencyMs, share, spentMs }, leftMs) => {
        const plan = learnt(latencyMs, { share });
        plan.spend(spentMs);
        const delayMs = plan.nextDelayMs(leftMs, 0);
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(delayMs).toBeLessThanOrEqual(2 ** 31 - 1);
        // It may land late by less than one timer, never by more.
        expect(delayMs).toBeLessThan(leftMs + 2);
      }),
      seeded(500),
    );
  });
});
