import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { Pace } from "../../src/view/pace.js";

/** Looks every 100 ms from `fromMs` on, at a count that `countAt` tells. */
function follow(pace: Pace, fromMs: number, untilMs: number, countAt: (ms: number) => number): void {
  for (let nowMs = fromMs; nowMs <= untilMs; nowMs += 100) pace.look(nowMs, countAt(nowMs));
}

it("knows a pace once five have come after the first, and is right at every moment between two of them", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 30_000 }), fc.integer({ min: 6, max: 60 }), (eachMs, count) => {
      const pace = new Pace();
      const countAt = (ms: number): number => Math.floor((ms + 0.5) / eachMs);
      follow(pace, 0, 4 * eachMs, countAt);
      expect(pace.msEach(4 * eachMs)).toBeUndefined();
      const untilMs = count * eachMs + 200;
      follow(pace, 4 * eachMs, untilMs, countAt);
      // Looks come every 100 ms, so that each may be seen that much late.
      const error = 200 / eachMs / 5 + 0.05;
      expect((pace.msEach(untilMs) ?? 0) / eachMs).toBeGreaterThan(1 - error);
      expect((pace.msEach(untilMs) ?? 0) / eachMs).toBeLessThan(1 + error);
    }),
    seeded(30),
  );
});

it("forgets a long pause after a minute, and grows while nothing comes", () => {
  const pace = new Pace();
  follow(pace, 0, 10_000, (ms) => Math.floor(ms / 1_000));
  expect(pace.msEach(310_000)).toBeGreaterThan(25_000);
  follow(pace, 310_000, 400_000, (ms) => 10 + Math.floor((ms - 310_000) / 1_000));
  expect(pace.msEach(400_000)).toBeGreaterThan(950);
  expect(pace.msEach(400_000)).toBeLessThan(1_050);
});
