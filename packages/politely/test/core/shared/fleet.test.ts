import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TakeKey } from "../../../src/shared/operation.js";
import { keyOf, takeOf } from "../../../src/testing/store/operations.js";
import { seeded } from "../../laws/seeded.js";
import { type Habit, Simulation, type Worker } from "./simulation.js";

const second = 1_000_000;
const processes = 50;

/** Limits under test: a key, and the mean time between its starts. */
const limits: readonly (readonly [string, TakeKey, number])[] = [
  ["a gap of 2 s", keyOf({ gapUs: 2 * second }), 2 * second],
  ["a bucket of 1 per 2 s", keyOf({ rateCount: 1, ratePerUs: 2 * second }), 2 * second],
  ["a gap of 20 ms", keyOf({ gapUs: 20_000 }), 20_000],
  ["a bucket of 50 per second with a burst of 5", keyOf({ rateCount: 50, ratePerUs: second, burst: 5 }), 20_000],
  ["a window of 40 per 10 s", keyOf({ windows: [40, 10 * second, 1] }), second / 4],
];

/** What fifty processes with one habit do in four rounds, after one in which they come. */
function afterOneRound(habit: Habit, paceUs: number): { counts: number[]; starts: number; questions: number } {
  const simulation = new Simulation(1);
  simulation.add(processes, habit);
  const roundUs = processes * paceUs;
  simulation.run(roundUs);
  const { takes } = simulation;
  const before = simulation.workers.map(({ startsUs }) => startsUs.length);
  simulation.run(4 * roundUs);
  const counts = simulation.workers.map(({ startsUs }, index) => startsUs.length - before[index]);
  return { counts, starts: counts.reduce((sum, count) => sum + count, 0), questions: simulation.takes - takes };
}

describe.each(limits)("fifty processes at %s", (_title, host, paceUs) => {
  it.each([
    ["with a queue each", Number.POSITIVE_INFINITY],
    ["with one request at a time", 1],
  ])("%s use it fully, take turns, and ask at most twice for each start", (_habit, backlog) => {
    const { counts, starts, questions } = afterOneRound({ wanted: { host }, backlog }, paceUs);
    expect(starts).toBeGreaterThanOrEqual(0.98 * 4 * processes);
    expect(questions / starts).toBeLessThanOrEqual(2);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2);
    expect(Math.max(...counts)).toBeLessThanOrEqual(7);
  });
});

/**
 * Places under test: how many, how long each is held, and how many questions a start may cost. Nobody is told when a place is
 * free: where each is held as long as the last, the next comes just then; else it has to look.
 */
const places: readonly (readonly [string, number, number | readonly [number, number], number])[] = [
  ["one place held for half a second", 1, second / 2, 2],
  ["one place held for 2 s", 1, 2 * second, 2.1],
  // And each asks every two minutes.
  ["one place held for 10 s", 1, 10 * second, 6.5],
  ["four places held for half a second", 4, second / 2, 2],
  ["one place held for 0.4 to 0.6 s", 1, [0.4 * second, 0.6 * second], 4],
  ["ten places held for 2 to 4 s", 10, [2 * second, 4 * second], 4],
];

describe.each(places)("fifty processes at %s", (_title, concurrency, workUs, most) => {
  it.each([
    ["with a queue each", Number.POSITIVE_INFINITY, most],
    ["with one request at a time, which asks as it comes,", 1, most + 3],
  ])("%s use it, take turns, and wake no herd", (_habit, backlog, mostOfAll) => {
    const meanUs = typeof workUs === "number" ? workUs : (workUs[0] + workUs[1]) / 2;
    const habit = { wanted: { host: keyOf({ concurrency }) }, backlog, workUs };
    const { counts, starts, questions } = afterOneRound(habit, meanUs / concurrency);
    expect(starts).toBeGreaterThanOrEqual(0.8 * 4 * processes);
    expect(questions / starts).toBeLessThanOrEqual(mostOfAll);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2);
    expect(Math.max(...counts)).toBeLessThanOrEqual(7);
  });
});

describe("nobody starves", () => {
  const longest = (workers: readonly Worker[]): number =>
    Math.max(...workers.map(({ longestWaitUs }) => longestWaitUs));

  it("at one key, whoever is killed: each live process is served within one and a half rounds and two seconds", () => {
    const anyFleet = fc.record({
      seed: fc.nat({ max: 2 ** 31 }),
      count: fc.integer({ min: 2, max: 30 }),
      paceUs: fc.constantFrom(2 * second, 200_000, 20_000),
      backlog: fc.constantFrom(1, Number.POSITIVE_INFINITY),
      kills: fc.array(fc.nat({ max: 29 }), { maxLength: 10 }),
    });
    fc.assert(
      fc.property(anyFleet, ({ seed, count, paceUs, backlog, kills }) => {
        const simulation = new Simulation(seed);
        const habit = { wanted: { host: keyOf({ gapUs: paceUs }) }, backlog };
        simulation.add(count, habit);
        for (const pick of kills) {
          simulation.run((count * paceUs) / 3);
          const alive = simulation.workers.filter(({ isAlive }) => isAlive);
          simulation.kill(alive[pick % alive.length]);
          simulation.add(1, habit);
        }
        simulation.run(3 * count * paceUs);
        const most = 1.5 * (count + kills.length) * paceUs + 2 * second;
        expect(longest(simulation.workers)).toBeLessThanOrEqual(most);
      }),
      seeded(8),
    );
  });

  it("who needs two busy keys at once: it is served within two rounds of both, and three seconds", () => {
    const anyFleet = fc.record({
      seed: fc.nat({ max: 2 ** 31 }),
      paces: fc.tuple(fc.constantFrom(20_000, 100_000, 500_000), fc.constantFrom(50_000, 200_000, 2 * second)),
      counts: fc.tuple(
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 4 }),
      ),
      backlog: fc.constantFrom(1, Number.POSITIVE_INFINITY),
    });
    fc.assert(
      fc.property(anyFleet, ({ seed, paces, counts, backlog }) => {
        const simulation = new Simulation(seed);
        const [x, y] = paces.map((gapUs) => keyOf({ gapUs }));
        simulation.add(counts[0], { wanted: { x }, backlog });
        simulation.add(counts[1], { wanted: { y }, backlog });
        const both = simulation.add(counts[2], { wanted: { x, y }, backlog });
        const roundUs = (counts[0] + counts[2]) * paces[0] + (counts[1] + counts[2]) * paces[1];
        simulation.run(5 * roundUs + 5 * second);
        expect(longest(both)).toBeLessThanOrEqual(2 * roundUs + 3 * second);
        expect(longest(simulation.workers)).toBeLessThanOrEqual(2 * roundUs + 3 * second);
      }),
      seeded(8),
    );
  });

  it("waiting for a place that others take again at once", () => {
    const simulation = new Simulation(1);
    const host = keyOf({ concurrency: 2 });
    simulation.add(6, { wanted: { host }, backlog: 1, workUs: 30_000 });
    simulation.run(10 * second);
    const counts = simulation.workers.map(({ startsUs }) => startsUs.length);
    expect(longest(simulation.workers)).toBeLessThanOrEqual(second);
    expect(Math.max(...counts) / Math.min(...counts)).toBeLessThan(1.5);
  });
});

describe("the end of a hold", () => {
  it.each([
    [2 * second, 3],
    [20_000, 30],
  ])("wakes no herd at a gap of %i µs: at most %i of fifty ask in the first 100 ms", (gapUs, most) => {
    const simulation = new Simulation(1);
    const { place } = simulation;
    const host = keyOf({ gapUs });
    simulation.add(processes, { wanted: { host } });
    simulation.run(5 * gapUs);
    const operation = takeOf(place.from(), [host]);
    const start = { startedUs: place.nowUs, token: 0, unitsAfter: [2 ** 40], previousUs: [-1] };
    const answer = { kind: "rate_limited", retryAfterUs: 300 * second } as const;
    place.settle(["host"], { operation, start, place: "elsewhere", grantedUs: place.nowUs }, { answer });
    simulation.run(300 * second - 10_000);
    const { takes } = simulation;
    simulation.run(110_000);
    expect(simulation.takes - takes).toBeLessThanOrEqual(most);
    expect(simulation.takes - takes).toBeGreaterThanOrEqual(1);
  });
});
