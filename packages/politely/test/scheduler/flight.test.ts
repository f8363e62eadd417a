import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GENERATION_US, type Hold, Holds, LooseFlights } from "../../src/scheduler/flight.js";
import { layoutFor, Slab } from "../../src/scheduler/slab.js";
import { seeded } from "../laws/seeded.js";

describe("places held at a key", () => {
  /** The starts of those in the list, from both ends. */
  function listed(holds: Holds): { forwards: number[]; backwards: number[] } {
    const forwards: number[] = [];
    const backwards: number[] = [];
    for (let hold = holds.first; hold !== undefined; hold = hold.next) forwards.push(hold.startedUs);
    for (let hold = holds.last; hold !== undefined; hold = hold.previous) backwards.push(hold.startedUs);
    return { forwards, backwards };
  }

  it("are kept oldest first, whoever leaves", () => {
    const holds = new Holds();
    const [a, b, c, d] = [1, 2, 3, 4].map((startedUs) => holds.add(0, startedUs, 1, true));
    holds.remove(b);
    expect(listed(holds)).toEqual({ forwards: [1, 3, 4], backwards: [4, 3, 1] });
    holds.remove(a);
    holds.remove(d);
    expect(listed(holds)).toEqual({ forwards: [3], backwards: [3] });
    holds.remove(c);
    expect([holds.count, holds.first, holds.last]).toEqual([0, undefined, undefined]);
    expect([a, b, c, d].some(({ isLive }) => isLive)).toBe(false);
  });

  it("lead to nobody once they have ended, so that who keeps an old permit keeps nothing else", () => {
    const holds = new Holds();
    const [a, b, c] = [1, 2, 3].map((startedUs) => holds.add(0, startedUs, 1, true));
    for (const hold of [b, a, c]) holds.remove(hold);
    for (const { previous, next } of [a, b, c]) expect([previous, next]).toEqual([undefined, undefined]);
  });

  it("add up their units until the windows have them", () => {
    const holds = new Holds();
    const heavy = holds.add(0, 1, 5, false);
    holds.add(0, 2, 2, false);
    holds.add(0, 3, 9, true);
    expect([holds.count, holds.pendingUnits]).toEqual([3, 7]);
    holds.remove(heavy);
    expect([holds.count, holds.pendingUnits]).toEqual([2, 2]);
  });

  it("are the same as a list from which some are struck out", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 9 }), { maxLength: 60 }), (picks) => {
        const holds = new Holds();
        let list: Hold[] = [];
        picks.forEach((pick, index) => {
          const one = list[pick];
          if (one === undefined) list.push(holds.add(0, index, 1, false));
          else {
            holds.remove(one);
            list = list.filter((each) => each !== one);
          }
          const forwards = list.map(({ startedUs }) => startedUs);
          expect(listed(holds)).toEqual({ forwards, backwards: [...forwards].reverse() });
          expect([holds.count, holds.pendingUnits]).toEqual([list.length, list.length]);
        });
      }),
      seeded(100),
    );
  });
});

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
