import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../../politely/test/laws/seeded.js";
import { Seconds } from "../../../src/serve/feed/seconds.js";

it("counts each of the last 120 seconds as a list of all instants does", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(40_000), fc.boolean()), { maxLength: 60 }),
      fc.nat(100_000),
      (steps, afterMs) => {
        const seconds = new Seconds();
        const instants: { readonly atMs: number; readonly isStart: boolean }[] = [];
        let nowMs = 0;
        for (const [stepMs, isStart] of steps) {
          nowMs += stepMs;
          if (isStart) seconds.started(nowMs);
          else seconds.throttled(nowMs);
          instants.push({ atMs: nowMs, isStart });
        }
        nowMs += afterMs;
        const newest = Math.floor(nowMs / 1_000);
        const counts = (wanted: boolean): number[] =>
          Array.from({ length: 120 }, (_, index) => {
            const second = newest - 119 + index;
            return instants.filter(({ atMs, isStart }) => isStart === wanted && Math.floor(atMs / 1_000) === second)
              .length;
          });
        expect(seconds.lists(nowMs)).toEqual({ starts: counts(true), throttled: counts(false) });
      },
    ),
    seeded(300),
  );
});

it("stops counting where a cell is full, rather than beginning again at zero", () => {
  const seconds = new Seconds();
  for (let count = 0; count < 70_000; count++) seconds.started(500);
  expect(seconds.lists(900).starts.at(-1)).toBe(65_535);
});

it("says 1 a second of one start each second, whenever it is asked", () => {
  const seconds = new Seconds();
  for (let second = 0; second < 30; second++) seconds.started(second * 1_000 + 370);
  for (let nowMs = 29_370; nowMs < 30_000; nowMs += 90) expect(seconds.perSecond(nowMs)).toBe(1);
  expect(seconds.perSecond(42_000)).toBe(0);
});
