import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GENERATION_US, LooseFlights } from "../../src/scheduler/flight.js";
import { layoutFor, Slab } from "../../src/scheduler/slab.js";
import { seeded } from "../laws/seeded.js";

describe("permits that are only counted", () => {
  function flights() {
    const slab = new Slab(layoutFor(0, false, false));
    const lapsed: [slot: number, count: number][] = [];
    const loose = new LooseFlights(slab, (slot, count) => lapsed.push([slot, count]));
    return { slab, loose, lapsed, slot: slab.allocate() };
  }
  const hour = GENERATION_US;

  it("go up with a start and down with its end", () => {
    const { loose, slot } = flights();
    loose.begin(slot, 10);
    loose.begin(slot, 20);
    expect(loose.count(slot, 30)).toBe(2);
    loose.end(slot, 10, 40);
    expect(loose.count(slot, 40)).toBe(1);
  });

  it("count through the next generation, and lapse with the one after", () => {
    const { loose, lapsed, slot } = flights();
    loose.begin(slot, 10);
    loose.begin(slot, hour + 10);
    expect([loose.count(slot, 2 * hour - 1), lapsed]).toEqual([2, []]);
    expect([loose.count(slot, 2 * hour), lapsed]).toEqual([1, [[slot, 1]]]);
    expect(loose.count(slot, 3 * hour - 1)).toBe(1);
    expect([loose.count(slot, 3 * hour), lapsed]).toEqual([
      0,
      [
        [slot, 1],
        [slot, 1],
      ],
    ]);
  });

  it("lapse all at once when nobody looked for several generations", () => {
    const { loose, lapsed, slot } = flights();
    loose.begin(slot, 10);
    loose.begin(slot, 20);
    loose.begin(slot, hour + 10);
    expect([loose.count(slot, 90 * hour), lapsed]).toEqual([0, [[slot, 3]]]);
    expect([loose.count(slot, 99 * hour), lapsed.length]).toEqual([0, 1]);
  });

  it("can be ended from the generation before, and no later", () => {
    const { loose, slot } = flights();
    loose.begin(slot, hour - 1);
    expect([loose.isOpen(hour - 1, hour), loose.isOpen(hour - 1, 2 * hour - 1)]).toEqual([true, true]);
    loose.end(slot, hour - 1, hour + 1);
    expect(loose.count(slot, hour + 2)).toBe(0);
    expect(loose.isOpen(hour - 1, 2 * hour)).toBe(false);
  });

  it("are counted from any instant the clock begins at", () => {
    const { loose, lapsed, slot } = flights();
    const nowUs = 1_234 * hour + 5;
    loose.begin(slot, nowUs);
    expect([loose.count(slot, nowUs), loose.lapseAt(nowUs), lapsed]).toEqual([1, 1_235 * hour, []]);
    loose.end(slot, nowUs, nowUs + hour);
    expect(loose.count(slot, nowUs + hour)).toBe(0);
  });

  it("balance: what began has ended, lapsed or is in flight, and what is in flight is younger than two generations", () => {
    const anyStep = fc.record({
      pauseUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: hour / 2 }), fc.integer({ min: 0, max: 3 * hour })),
      key: fc.nat({ max: 2 }),
      pick: fc.nat(),
      isEnd: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
        const { slab, loose, lapsed, slot } = flights();
        const slots = [slot, slab.allocate(), slab.allocate()];
        const open = slots.map((): number[] => []);
        const [begun, ended] = [slots.map(() => 0), slots.map(() => 0)];
        let nowUs = 0;
        for (const { pauseUs, key, pick, isEnd } of steps) {
          nowUs += pauseUs;
          open[key] = open[key].filter((startedUs) => loose.isOpen(startedUs, nowUs));
          if (!isEnd || open[key].length === 0) {
            loose.begin(slots[key], nowUs);
            open[key].push(nowUs);
            begun[key] += 1;
          } else {
            const [startedUs] = open[key].splice(pick % open[key].length, 1);
            loose.end(slots[key], startedUs, nowUs);
            ended[key] += 1;
          }
          const count = loose.count(slots[key], nowUs);
          const lapses = lapsed.filter(([each]) => each === slots[key]).reduce((sum, [, times]) => sum + times, 0);
          expect(count).toBe(open[key].length);
          expect(count + ended[key] + lapses).toBe(begun[key]);
          expect(open[key].every((startedUs) => nowUs - startedUs < 2 * hour)).toBe(true);
        }
      }),
      seeded(200),
    );
  });
});
