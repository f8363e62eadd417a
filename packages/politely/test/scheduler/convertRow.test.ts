import { describe, expect, it } from "vitest";
import { compileRule } from "../../src/policy/compileRule.js";
import type { Limits } from "../../src/policy/types.js";
import { convertRow } from "../../src/scheduler/convertRow.js";
import { ONE } from "../../src/scheduler/cost.js";
import type { Ledger } from "../../src/scheduler/ledger.js";
import { NO_LOG } from "../../src/scheduler/windowLogs.js";
import { oneKey } from "./oneKey.js";

const second = 1_000_000;

/** Puts other limits in force at the one key. */
function change(ledger: Ledger, slot: number, limits: Limits, nowUs: number): void {
  const from = ledger.profileOf(slot).rule;
  const rule = compileRule(limits);
  ledger.makeRoomFor(rule);
  ledger.slab.setProfileNumber(slot, ledger.profiles.numberOf(rule));
  convertRow(ledger, slot, from, nowUs);
}

describe("a window that has become shorter", () => {
  it("is remembered until nothing from before the change would be in it, however often the rule changes meanwhile", () => {
    const { ledger, slot } = oneKey({ window: "2/10s" });
    ledger.take(slot, ONE, 0);
    for (let nowUs = second; nowUs < 11 * second; nowUs += second) {
      change(ledger, slot, { window: `${2 + ((nowUs / second) % 2)}/s` }, nowUs);
      expect(ledger.former.get(slot)?.untilUs).toBe(11 * second);
      ledger.take(slot, ONE, nowUs);
    }
    ledger.take(slot, ONE, 11 * second);
    expect([ledger.former.size, ledger.log(slot, 1)]).toEqual([0, NO_LOG]);
    change(ledger, slot, { window: "3/s" }, 12 * second);
    expect(ledger.former.size).toBe(0);
  });

  it("is not remembered when nothing is in it", () => {
    const { ledger, slot } = oneKey({ window: "2/10s" });
    ledger.take(slot, ONE, 0);
    change(ledger, slot, { window: "2/s" }, 10 * second);
    expect(ledger.former.size).toBe(0);
  });

  it("takes no memory once the row is forgotten", () => {
    const { ledger, slot } = oneKey({ window: "2/10s" });
    ledger.take(slot, ONE, 0);
    change(ledger, slot, { window: "2/s" }, second);
    ledger.forget(slot);
    expect([0, 1].map((index) => ledger.log(slot, index))).toEqual([NO_LOG, NO_LOG]);
    // The block of numbers begins anew when no log is in use.
    expect(ledger.logs.append(NO_LOG, { count: 1, perUs: 1, grainUs: 1 }, 0, 1)).toBe(1);
  });
});

describe("windows that stay", () => {
  it("keep their logs as they are when others come and go beside them", () => {
    const { ledger, slot } = oneKey({ window: ["5/s", "9/min"] });
    ledger.take(slot, ONE, 0);
    const before = [0, 1].map((index) => ledger.log(slot, index));
    change(ledger, slot, { window: ["9/min", "20/h", "5/s"] }, 1);
    expect([ledger.log(slot, 2), ledger.log(slot, 0)]).toEqual(before);
    expect(ledger.windowUsed(slot, 1, 1)).toBe(1);
  });

  it("are counted as finely as before when one beside them is counted in groups", () => {
    const { ledger, slot } = oneKey({ window: ["10000/h", "1/s"] });
    ledger.take(slot, ONE, 7);
    change(ledger, slot, { window: ["10000/h", "1/500ms"] }, 8);
    expect(ledger.readyAt(slot, ONE, 8)).toBe(500_007);
  });
});
