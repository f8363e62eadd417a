import { compileRule } from "../../src/policy/compileRule.js";
import type { Limits } from "../../src/policy/types.js";
import type { Cost } from "../../src/scheduler/cost.js";
import type { Hold } from "../../src/scheduler/flight.js";
import { Ledger } from "../../src/scheduler/ledger.js";

/** The same cost for every kind of limit. */
export function units(count: number): Cost {
  return { rate: count, window: count, quota: count };
}

/** A ledger with one key under `limits`, a wall clock that can be set, and what it said about permits held too long. */
export function oneKey(limits: Limits, wallMs = 0) {
  const wall = { ms: wallMs };
  const lapsedHolds: Hold[] = [];
  const lapsedLoose: number[] = [];
  const ledger = new Ledger(false, {
    holdLapsed: (hold) => void lapsedHolds.push(hold),
    looseLapsed: (_, count) => void lapsedLoose.push(count),
    wallMs: () => wall.ms,
  });
  return { ledger, slot: addKey(ledger, limits), wall, lapsedHolds, lapsedLoose };
}

/** Adds a key under `limits` and returns its row. */
export function addKey(ledger: Ledger, limits: Limits): number {
  const rule = compileRule(limits);
  ledger.makeRoomFor(rule);
  const slot = ledger.slab.allocate();
  ledger.slab.setProfileNumber(slot, ledger.profiles.numberOf(rule));
  return slot;
}
