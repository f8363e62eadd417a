import { describe, expect, it } from "vitest";
import { Patience, RunningTime } from "../../../src/stores/threads/runningTime.js";

describe("running time", () => {
  it("counts 10 ms at most between two looks, so that a stop of the process is no wait", () => {
    let nowMs = 1_000;
    const time = new RunningTime(() => nowMs);
    const rows = [
      [1_000, 0],
      [1_003, 3],
      [1_013, 13],
      [1_023.5, 23],
      [3_601_023.5, 33],
      [3_601_024, 33.5],
      // A clock that steps back counts as no time passed.
      [500, 33.5],
      [501, 34.5],
    ];
    for (const [atMs, expectedMs] of rows) {
      nowMs = atMs;
      expect(time.ms()).toBe(expectedMs);
    }
  });
});

describe("patience", () => {
  it("is over when the same sign was seen in every look for the longest time", () => {
    const patience = new Patience(100);
    const rows = [
      [7, 0, false],
      [7, 99, false],
      [7, 100, true],
      [8, 101, false],
      [7, 150, false],
      [7, 249, false],
      [7, 250, true],
    ] as const;
    for (const [sign, nowMs, isOver] of rows) expect(patience.isOver(sign, nowMs)).toBe(isOver);
  });
});
