import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toMsAtOrAfter, toUs } from "../../src/engine/systemClock.js";
import { seeded } from "../laws/seeded.js";

describe("instants", () => {
  it.each([
    [0, 0],
    [1, 1_000],
    [1.001, 1_001],
    [0.0009999, 1],
    [0.0009, 0],
    [0.1 + 0.2, 300],
    [1_234_567.891, 1_234_567_891],
    [-0.001, -1],
  ])("read %s ms as %s whole microseconds", (ms, us) => {
    expect(toUs(ms)).toBe(us);
  });

  const anyUs = fc.oneof(fc.nat({ max: 10_000 }), fc.nat({ max: 2 ** 31 - 1 }), fc.integer({ min: 0, max: 1e15 }));

  it("are never reached early: a timer set for one finds it has come, up to 1e12 ms", () => {
    fc.assert(
      fc.property(anyUs, (us) => {
        const readUs = toUs(toMsAtOrAfter(us));
        expect(readUs).toBeGreaterThanOrEqual(us);
        expect(readUs).toBeLessThanOrEqual(us + 1);
      }),
      seeded(5_000),
    );
  });

  it("are reached on time, to the microsecond, for the first hundred days", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8_640_000_000_000 }), (us) => {
        expect(toUs(toMsAtOrAfter(us))).toBe(us);
        expect(toMsAtOrAfter(us)).toBe(us / 1000);
      }),
      seeded(5_000),
    );
  });

  it("grow with the clock: a later reading is never an earlier instant", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        fc.double({ min: 0, max: 10, noNaN: true }),
        (ms, more) => {
          expect(toUs(ms + more)).toBeGreaterThanOrEqual(toUs(ms));
        },
      ),
      seeded(2_000),
    );
  });
});
