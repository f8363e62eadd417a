import { describe, expect, it } from "vitest";
import type { QuotaRule } from "../../src/core/rule.js";
import { Quotas } from "../../src/scheduler/quotas.js";
import { layoutFor, Slab } from "../../src/scheduler/slab.js";

const daily: QuotaRule = { count: 5, per: "day", timeZone: "UTC" };
const dayMs = 86_400_000;

/** Quotas of one row, with a wall clock that can be set. */
function budget(wallMs: number) {
  const wall = { ms: wallMs };
  const slab = new Slab(layoutFor(0, true, false));
  const quotas = new Quotas(slab, () => wall.ms);
  return { wall, quotas, slab, slot: slab.allocate() };
}

describe("a budget of five a day", () => {
  it("is whole at first, and whole again the next day", () => {
    const { quotas, wall, slot } = budget(1_000 * dayMs + 7);
    expect(quotas.used(slot, daily)).toBe(0);
    expect(quotas.spend(slot, daily, 3)).toBe(1_000);
    expect(quotas.spend(slot, daily, 2)).toBe(1_000);
    expect(quotas.used(slot, daily)).toBe(5);
    wall.ms = 1_001 * dayMs;
    expect(quotas.used(slot, daily)).toBe(0);
    expect(quotas.spend(slot, daily, 1)).toBe(1_001);
    expect(quotas.used(slot, daily)).toBe(1);
  });

  it("lets what fits start now, and the rest at the end of the day", () => {
    const { quotas, slot } = budget(1_000 * dayMs + dayMs / 4);
    quotas.spend(slot, daily, 3);
    expect(quotas.readyAt(slot, daily, 2, 50)).toBe(50);
    expect(quotas.readyAt(slot, daily, 3, 50)).toBe(50 + (dayMs - dayMs / 4) * 1000);
  });

  it("rounds the end of the day up to whole microseconds, and never says now when it is not", () => {
    const { quotas, wall, slot } = budget(1_001 * dayMs - 0.0004);
    quotas.spend(slot, daily, 5);
    expect(quotas.readyAt(slot, daily, 1, 50)).toBe(51);
    wall.ms = 1_001 * dayMs - 0.25;
    expect(quotas.readyAt(slot, daily, 1, 50)).toBe(300);
  });

  it("stays spent when the wall clock is set back, until the end of the day it was spent in", () => {
    const { quotas, wall, slot } = budget(1_000 * dayMs);
    quotas.spend(slot, daily, 5);
    wall.ms = 998 * dayMs;
    expect(quotas.used(slot, daily)).toBe(5);
    expect(quotas.readyAt(slot, daily, 1, 0)).toBe(3 * dayMs * 1000);
    wall.ms = 1_001 * dayMs;
    expect(quotas.readyAt(slot, daily, 1, 0)).toBe(0);
  });

  it("spends from the day it was in after the wall clock is set back", () => {
    const { quotas, wall, slot } = budget(1_000 * dayMs);
    quotas.spend(slot, daily, 3);
    wall.ms = 998 * dayMs;
    expect(quotas.spend(slot, daily, 1)).toBe(1_000);
    wall.ms = 999 * dayMs;
    expect(quotas.used(slot, daily)).toBe(4);
  });

  it("takes units back in the day they were spent in, and not in a later one", () => {
    const { quotas, wall, slot } = budget(1_000 * dayMs);
    const period = quotas.spend(slot, daily, 4);
    quotas.giveBack(slot, period, 1);
    expect(quotas.used(slot, daily)).toBe(3);
    quotas.giveBack(slot, period, -2);
    expect(quotas.used(slot, daily)).toBe(5);
    wall.ms += dayMs;
    quotas.spend(slot, daily, 2);
    quotas.giveBack(slot, period, 4);
    expect(quotas.used(slot, daily)).toBe(2);
    quotas.giveBack(slot, period + 1, 9);
    expect(quotas.used(slot, daily)).toBe(0);
  });

  it("carries what is spent into another calendar", () => {
    const { quotas, wall, slot } = budget(1_000 * dayMs);
    quotas.spend(slot, daily, 4);
    const monthly: QuotaRule = { count: 9, per: "month", timeZone: "UTC" };
    quotas.restart(slot, monthly, 4);
    expect(quotas.used(slot, monthly)).toBe(4);
    wall.ms += 40 * dayMs;
    expect(quotas.used(slot, monthly)).toBe(0);
  });

  it("can be cleared, also where no row has a quota", () => {
    const { quotas, slot } = budget(1_000 * dayMs);
    quotas.spend(slot, daily, 4);
    quotas.clear(slot);
    expect(quotas.used(slot, daily)).toBe(0);
    const slab = new Slab(layoutFor(0, false, true));
    const row = slab.allocate();
    const before = [...slab.chunkOf(row).words];
    new Quotas(slab, () => 0).clear(row);
    expect([...slab.chunkOf(row).words]).toEqual(before);
  });

  it("counts each row on its own", () => {
    const { quotas, slab, slot } = budget(1_000 * dayMs);
    const other = slab.allocate();
    quotas.spend(slot, daily, 4);
    quotas.spend(other, daily, 1);
    expect([quotas.used(slot, daily), quotas.used(other, daily)]).toEqual([4, 1]);
  });
});
