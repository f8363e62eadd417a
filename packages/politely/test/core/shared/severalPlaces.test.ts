import { describe, expect, it } from "vitest";
import { keyOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";
import { Simulation } from "./simulation.js";

const second = 1_000_000;
const one = keyOf({ concurrency: 1 });

describe("who needs a place at each of two busy keys", () => {
  it.each([
    ["for 100 ms each", 100_000],
    ["for 60 to 140 ms", [60_000, 140_000]],
    ["for 2 s each", 2 * second],
  ] as const)("gets both within 10 s and two rounds, where others hold them %s", (_title, workUs) => {
    const [alone, shared] = [new Simulation(7), new Simulation(7)];
    for (const simulation of [alone, shared]) {
      simulation.add(2, { wanted: { x: one }, backlog: 1, workUs });
      simulation.add(2, { wanted: { y: one }, backlog: 1, workUs });
    }
    const [both] = shared.add(1, { wanted: { x: one, y: one }, backlog: 1, workUs: 100_000 });
    for (const simulation of [alone, shared]) simulation.run(100 * second);
    const roundUs = typeof workUs === "number" ? workUs : workUs[1];
    expect(both.longestWaitUs).toBeLessThanOrEqual(11 * second + 4 * roundUs);
    // The others stand back for its turns only.
    const [before, after] = [alone, shared].map(({ workers }) =>
      workers.slice(0, 4).reduce((sum, { startsUs }) => sum + startsUs.length, 0),
    );
    expect(after + 2 * both.startsUs.length).toBeGreaterThan(0.85 * before);
  });

  it.each([
    ["a gap of a second", keyOf({ gapUs: second })],
    ["a bucket of 2 per second", keyOf({ rateCount: 2, ratePerUs: second, burst: 3 })],
    ["a window of 3 per 2 s", keyOf({ windows: [3, 2 * second, 1] })],
  ])("gets a place at one and a start at the other, which others use up: %s", (_title, y) => {
    const simulation = new Simulation(7);
    simulation.add(2, { wanted: { x: one }, backlog: 1, workUs: 100_000 });
    simulation.add(2, { wanted: { y }, backlog: 1 });
    const [both] = simulation.add(1, { wanted: { x: one, y }, backlog: 1, workUs: 100_000 });
    simulation.run(100 * second);
    expect(both.longestWaitUs).toBeLessThanOrEqual(15 * second);
  });

  it("keeps nobody from one of them before it has waited for 10 s, nor while the other is paused", () => {
    const place = new Place();
    const wanted = { x: one, y: one };
    place.start({ x: one });
    const { nowUs: joinedUs, stop } = place.take(wanted, { ticket: "both" }).reply;
    expect(place.wait(1_000).fit({ y: one }, 1)).toBe(1);
    expect(stop?.kind).toBe("concurrency");
    const paused = new Place();
    paused.send(["x"], { kind: "set", ...paused.from(), pauseUs: 1_000 * second, reset: "nothing" });
    paused.wait(20 * second).take(wanted, { ticket: "both", turnUs: 1, joinedUs });
    expect(paused.wait(1_000).fit({ y: one }, 1)).toBe(1);
  });

  it("keeps both from then on, and for a second at most when it is gone", () => {
    const place = new Place();
    const wanted = { x: one, y: one };
    const held = { leaseUs: 60 * second };
    place.start({ x: one }, held);
    const { nowUs: joinedUs } = place.take(wanted, { ticket: "both" }).reply;
    const { stop } = place.wait(10 * second + 1).take(wanted, { ticket: "both", turnUs: 1, joinedUs }).reply;
    expect((stop?.turnUs ?? 0) - place.nowUs).toBeLessThanOrEqual(second);
    expect(place.look(wanted).map(({ waiting }) => waiting)).toEqual([1, 1]);
    expect(place.wait(1_000).fit({ y: one }, 1)).toBe(0);
    expect(place.wait(second + 100_000).fit({ y: one }, 1)).toBe(1);
  });
});
