import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import { ONE } from "../../src/scheduler/cost.js";
import { addKey, oneKey, units } from "./oneKey.js";

const second = 1_000_000;

type Row = readonly [atMs: number, answer: "granted" | number, binding?: string];

/** Asks for one unit per row, takes it when granted, and compares the answer and what was most binding. */
function play(limits: Limits, rows: readonly Row[]): void {
  const { ledger, slot } = oneKey(limits);
  rows.forEach(([atMs, answer, binding], index) => {
    const nowUs = atMs * 1000;
    const readyUs = ledger.readyAt(slot, ONE, nowUs);
    expect(readyUs <= nowUs ? "granted" : readyUs / 1000, `row ${index}, at ${atMs} ms`).toBe(answer);
    expect(ledger.binding, `row ${index}, at ${atMs} ms`).toBe(binding);
    if (readyUs <= nowUs) ledger.take(slot, ONE, nowUs);
  });
}

describe("a key with several limits", () => {
  it("is ready when all of them are, and names the one that takes longest", () => {
    play({ minDelay: 100, rate: "2/s", burst: 2, window: ["3/5s"] }, [
      [0, "granted"],
      [0, 100, "minDelay"],
      [100, "granted"],
      [100, 500, "rate"],
      [500, "granted"],
      [500, 5000, "window"],
      [5000, "granted"],
      [5000, 5100, "minDelay"],
    ]);
  });

  it("names the window that takes longest among several", () => {
    const { ledger, slot } = oneKey({ window: ["1/s", "2/min", "3/10s"] });
    ledger.take(slot, ONE, 0);
    expect([ledger.readyAt(slot, ONE, 5), ledger.binding]).toEqual([second, "window"]);
    ledger.take(slot, ONE, 2 * second);
    expect([ledger.readyAt(slot, ONE, 2 * second), ledger.binding]).toEqual([60 * second, "window"]);
  });

  it("counts gaps that others ask for from the answer where its own count from there, and holds without a gap from nothing", () => {
    const { ledger, slot } = oneKey({ rate: "9/s", burst: 9, countFrom: "answer", maxHold: "60s" });
    const asked = { gapUs: 5 * second, holdUntilUs: 0, untilUs: 999 * second, because: "Crawl-delay" };
    ledger.slowdowns.set(slot, "robots", asked);
    ledger.slowdowns.set(slot, "headers", { ...asked, gapUs: 0, holdUntilUs: 3 * second });
    const taken = ledger.take(slot, ONE, 0);
    expect([ledger.readyAt(slot, ONE, second), ledger.binding]).toEqual([65 * second, "robots"]);
    ledger.end(taken, 2 * second, 1);
    expect([ledger.readyAt(slot, ONE, 2 * second), ledger.binding]).toEqual([7 * second, "robots"]);
    expect([ledger.readyAt(slot, ONE, 7 * second), ledger.binding]).toEqual([7 * second, undefined]);
    ledger.slowdowns.set(slot, "robots", undefined);
    ledger.take(slot, ONE, 2 * second);
    expect([ledger.readyAt(slot, ONE, 2 * second), ledger.binding]).toEqual([3 * second, "headers"]);
  });

  it("limits nothing when it is turned off, but for a pause", () => {
    const { ledger, slot } = oneKey({ enabled: false, minDelay: 1_000 });
    ledger.take(slot, ONE, 0);
    expect(ledger.readyAt(slot, ONE, 0)).toBe(0);
    ledger.setPause(slot, 500);
    expect([ledger.readyAt(slot, ONE, 0), ledger.binding]).toEqual([500, "pause"]);
    expect([ledger.readyAt(slot, ONE, 500), ledger.pauses.size]).toEqual([500, 0]);
  });

  it("is left alone during a cooldown, then waits for its probe", () => {
    const { ledger, slot } = oneKey({ rate: "100/s" });
    const state = {
      untilUs: 9 * second,
      beganUs: 0,
      throttleStep: 1,
      errorStep: 0,
      throttleRaised: true,
      errorRaised: false,
      probe: "due" as const,
      probeAtUs: 0,
      because: "429",
    };
    ledger.setCooldown(slot, state);
    expect([ledger.readyAt(slot, ONE, 0), ledger.binding]).toEqual([9 * second, "cooldown"]);
    ledger.setCooldown(slot, { ...state, probe: "out", probeAtUs: 9 * second });
    expect([ledger.readyAt(slot, ONE, 10 * second), ledger.binding]).toEqual([14 * second, "probe"]);
    ledger.setCooldown(slot, undefined);
    expect([ledger.readyAt(slot, ONE, 10 * second), ledger.cooldowns.size]).toEqual([10 * second, 0]);
  });

  it("waits for the end of the day when its quota is spent", () => {
    const { ledger, slot } = oneKey({ quota: { count: 2, per: "day" } }, 86_400_000 - 1_000);
    expect(ledger.take(slot, ONE, 0).period).toBe(0);
    ledger.take(slot, ONE, 0);
    expect([ledger.readyAt(slot, ONE, 7), ledger.binding]).toEqual([7 + second, "quota"]);
  });

  it("keeps what it counted when another key needs wider rows", () => {
    const { ledger, slot } = oneKey({ window: "1/s", rate: "1/s" });
    ledger.take(slot, ONE, 0);
    const other = addKey(ledger, { window: ["1/s", "2/s", "3/s"], quota: { count: 1, per: "hour" } });
    ledger.take(other, ONE, 5);
    expect([ledger.readyAt(slot, ONE, 6), ledger.readyAt(other, ONE, 6)]).toEqual([second, 6 + 3_600 * second]);
    expect([ledger.windowUsed(slot, 0, 6), ledger.windowUsed(other, 2, 6)]).toEqual([1, 1]);
  });
});

describe("starts that were recorded", () => {
  it("count even beyond the limits", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", burst: 2, window: "3/10s" });
    for (let index = 0; index < 5; index += 1) ledger.record(slot, ONE, index, index);
    expect(ledger.owedAt(slot, 4)).toBeGreaterThan(4 * second);
    expect(ledger.rateAt(slot, ONE)).toBe(4 * second);
    expect(ledger.windowAt(slot, 0, ONE, 5)).toBe(10 * second + 2);
  });

  it("from the past count as late as what is known already, and do not move the last start back", () => {
    const { ledger, slot } = oneKey({ minDelay: 1_000, rate: "1/s", burst: 2, window: "2/10s" });
    ledger.take(slot, ONE, 5 * second);
    ledger.record(slot, ONE, 2 * second, 5 * second);
    expect(ledger.lastUs(slot)).toBe(5 * second);
    expect(ledger.rateAt(slot, ONE)).toBe(6 * second);
    expect(ledger.windowAt(slot, 0, ONE, 6 * second)).toBe(15 * second);
  });
});

describe("places", () => {
  it("are as many as the concurrency, and come back at the end", () => {
    const { ledger, slot } = oneKey({ concurrency: 2, maxHold: "1min" });
    const [first] = [ledger.take(slot, ONE, 0), ledger.take(slot, ONE, 10)];
    expect([ledger.readyAt(slot, ONE, 20), ledger.binding, ledger.inFlight(slot, 20)]).toEqual([
      60 * second,
      "concurrency",
      2,
    ]);
    ledger.end(first, 30, 1);
    expect([ledger.readyAt(slot, ONE, 30), ledger.isOpen(first, 30)]).toEqual([30, false]);
  });

  it("come back exactly at maxHold, with a word about each", () => {
    const { ledger, slot, lapsedHolds } = oneKey({ concurrency: 2, maxHold: "1min" });
    const taken = [0, 10, 20].map((atUs) => ledger.take(slot, ONE, atUs));
    expect(ledger.readyAt(slot, ONE, 60 * second - 1)).toBe(60 * second);
    expect(lapsedHolds).toEqual([]);
    expect(ledger.readyAt(slot, ONE, 60 * second + 10)).toBe(60 * second + 10);
    expect(lapsedHolds).toEqual([taken[0].hold, taken[1].hold]);
    expect(taken.map((each) => ledger.isOpen(each, 60 * second + 10))).toEqual([false, false, true]);
  });

  it("are only counted where no limit follows them, and lapse within two hours", () => {
    const { ledger, slot, lapsedLoose } = oneKey({ rate: "1/s" });
    const taken = ledger.take(slot, ONE, 0);
    expect([taken.hold, ledger.inFlight(slot, 5), ledger.holds.size]).toEqual([undefined, 1, 0]);
    expect([ledger.inFlight(slot, 7_200 * second), lapsedLoose]).toEqual([0, [1]]);
    expect(ledger.isOpen(taken, 7_200 * second)).toBe(false);
  });
});

describe("counting from the answer", () => {
  const limits: Limits = { minDelay: 1_000, window: "2/10s", countFrom: "answer", maxHold: "1min" };

  it("lets nothing follow a start in flight before it could have lapsed", () => {
    const { ledger, slot } = oneKey(limits);
    ledger.take(slot, ONE, 0);
    expect([ledger.readyAt(slot, ONE, 5), ledger.binding]).toEqual([61 * second, "minDelay"]);
    expect([ledger.windowUsed(slot, 0, 5), ledger.windowAt(slot, 0, units(2), 5)]).toEqual([1, 70 * second]);
  });

  it("begins gap and windows when the answer is there", () => {
    const { ledger, slot } = oneKey(limits);
    const taken = ledger.take(slot, ONE, 0);
    ledger.end(taken, 3 * second, 1);
    expect(ledger.readyAt(slot, ONE, 3 * second)).toBe(4 * second);
    expect(ledger.windowAt(slot, 0, units(2), 4 * second)).toBe(13 * second);
  });

  it("begins them at maxHold for one that is never answered", () => {
    const { ledger, slot } = oneKey(limits);
    ledger.take(slot, ONE, 0);
    expect(ledger.readyAt(slot, ONE, 60 * second + 5)).toBe(61 * second);
    expect(ledger.windowAt(slot, 0, units(2), 61 * second)).toBe(70 * second);
  });

  it("leaves nothing of a start that was never sent", () => {
    const { ledger, slot } = oneKey(limits);
    const taken = ledger.take(slot, ONE, 0);
    ledger.giveBack(taken, ONE, 2 * second, true);
    ledger.end(taken, 2 * second, undefined);
    expect([ledger.readyAt(slot, units(2), 2 * second), ledger.isFresh(slot, 2 * second)]).toEqual([2 * second, true]);
    expect(ledger.holds.size).toBe(0);
  });
});

describe("a fresh key", () => {
  it.each<{ title: string; limits: Limits; freshMs: number }>([
    { title: "a gap", limits: { minDelay: 700 }, freshMs: 700 },
    { title: "a bucket", limits: { rate: "1/s", burst: 3 }, freshMs: 1_000 },
    { title: "a window", limits: { window: "5/s" }, freshMs: 1_000 },
    { title: "a quota", limits: { quota: { count: 9, per: "hour" } }, freshMs: 3_600_000 },
    { title: "several", limits: { minDelay: 700, window: ["5/s", "9/min"] }, freshMs: 60_000 },
    { title: "nothing", limits: {}, freshMs: 0 },
  ])("is one again once it owes nothing: $title", ({ limits, freshMs }) => {
    const { ledger, slot, wall } = oneKey(limits);
    expect(ledger.isFresh(slot, 0)).toBe(true);
    const taken = ledger.take(slot, ONE, 0);
    expect(ledger.isFresh(slot, 0)).toBe(false);
    ledger.end(taken, 0, 1);
    if (freshMs > 0) {
      wall.ms = freshMs - 1;
      expect(ledger.isFresh(slot, freshMs * 1000 - 1)).toBe(false);
    }
    wall.ms = freshMs;
    expect(ledger.isFresh(slot, freshMs * 1000)).toBe(true);
  });

  it("has nothing in flight, no pause and no incident that is remembered", () => {
    const { ledger, slot } = oneKey({ concurrency: 1 });
    const taken = ledger.take(slot, ONE, 0);
    expect(ledger.isFresh(slot, 5)).toBe(false);
    ledger.end(taken, 5, 1);
    ledger.setPause(slot, 100);
    expect([ledger.isFresh(slot, 99), ledger.isFresh(slot, 100)]).toEqual([false, true]);
  });

  it("takes nothing but its row once it was told to forget", () => {
    const { ledger, slot } = oneKey({ window: ["5/s", "9/min"], concurrency: 3 });
    for (let index = 0; index < 4; index += 1) ledger.take(slot, ONE, index);
    ledger.forget(slot);
    expect([ledger.windowUsed(slot, 0, 5), ledger.windowUsed(slot, 1, 5), ledger.holds.size]).toEqual([0, 0, 0]);
  });
});
