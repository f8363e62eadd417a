import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOf } from "../../../src/testing/store/operations.js";
import { seeded } from "../../laws/seeded.js";
import { Place } from "./place.js";
import { Simulation } from "./simulation.js";

const second = 1_000_000;
const bucket = { rateCount: 1, ratePerUs: second, burst: 5 };
const window = { windows: [5, 5 * second, 1] };

describe.each([
  ["a bucket", bucket],
  ["a window", window],
])("whoever saves up in %s", (_title, limits) => {
  const light = { host: keyOf(limits) };
  const heavy = { host: keyOf(limits, { cost: 5 }) };

  it("is passed by nobody who comes later and wants less", () => {
    const place = new Place();
    expect(place.fit(light, 5)).toBe(5);
    const { stop, nowUs } = place.take(heavy, { ticket: "heavy" }).reply;
    const turnUs = stop?.turnUs ?? 0;
    expect(turnUs - nowUs).toBe(5 * second);
    while (place.nowUs < turnUs - 100_000) {
      place.wait(99_999);
      expect(place.fit(light, 1)).toBe(0);
      expect(place.fit(light, 1, { ticket: "light", turnUs: place.nowUs, joinedUs: nowUs + 1 })).toBe(0);
    }
    place.nowUs = turnUs;
    expect(place.fit(heavy, 1, { ticket: "heavy", turnUs, joinedUs: nowUs })).toBe(1);
  });

  it("is told of, in units, to those behind it", () => {
    const place = new Place();
    for (let start = 0; start < 5; start++) place.start(light);
    const turns = [heavy, light].map((wanted, index) => place.take(wanted, { ticket: `t${index}` }).reply.stop?.turnUs);
    expect(turns[1]).toBeGreaterThan(turns[0] ?? Number.POSITIVE_INFINITY);
  });

  it("is no longer waited for when it is gone: a lease later at most", () => {
    const place = new Place();
    const rule = { rateCount: 1, ratePerUs: 60 * second, burst: 5 };
    const [few, many] = [{ host: keyOf(rule) }, { host: keyOf(rule, { cost: 5 }) }];
    expect(place.fit(few, 5)).toBe(5);
    place.take(many, { ticket: "gone", leaseUs: 30 * second });
    place.wait(31 * second).take(few, { ticket: "light" });
    expect(place.wait(30 * second).fit(few, 1)).toBe(1);
  });
});

describe("a heavy request", () => {
  it("is served in its turn, whatever its weight and however many want less", () => {
    const anyFleet = fc.record({
      seed: fc.nat({ max: 2 ** 31 }),
      limits: fc.constantFrom<readonly object[]>(
        [bucket],
        [window],
        [{ ...bucket, gapUs: second / 2 }],
        [bucket, window],
      ),
      cost: fc.integer({ min: 2, max: 5 }),
      light: fc.integer({ min: 1, max: 6 }),
      heavy: fc.integer({ min: 1, max: 2 }),
      backlog: fc.constantFrom(1, Number.POSITIVE_INFINITY),
    });
    fc.assert(
      fc.property(anyFleet, ({ seed, limits, cost, light, heavy, backlog }) => {
        const simulation = new Simulation(seed);
        const wanted = (units: number) =>
          Object.fromEntries(limits.map((rule, index) => [`key-${index}`, keyOf(rule, { cost: units })]));
        simulation.add(light, { wanted: wanted(1), backlog });
        const heavies = simulation.add(heavy, { wanted: wanted(cost), backlog: 1, workUs: 10_000 });
        simulation.run(120 * second);
        // A round is one start of each; a window has one of each at least in every second period.
        const mostUs = (2 * (light + heavy * cost) + 10) * second;
        for (const { longestWaitUs } of heavies) expect(longestWaitUs).toBeLessThanOrEqual(mostUs);
      }),
      seeded(30),
    );
  });

  it.each([
    ["two buckets", bucket, bucket],
    ["a bucket and a window", bucket, window],
    ["two windows", window, { windows: [7, 4 * second, 1] }],
  ])("that needs much of %s gets it, though others use up each of them", (_title, one, other) => {
    const simulation = new Simulation(3);
    simulation.add(2, { wanted: { x: keyOf(one) }, backlog: 1 });
    simulation.add(2, { wanted: { y: keyOf(other) }, backlog: 1 });
    const wanted = { x: keyOf(one, { cost: 5 }), y: keyOf(other, { cost: 5 }) };
    const [heavy] = simulation.add(1, { wanted, backlog: 1, workUs: 10_000 });
    simulation.run(120 * second);
    expect(heavy.longestWaitUs).toBeLessThanOrEqual(20 * second);
  });

  it("that waits for something else keeps nobody waiting", () => {
    const place = new Place();
    const global = keyOf(bucket, { cost: 5 });
    const taken = place.start({ host: keyOf({}) });
    place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: 600 * second } });
    place.take({ host: keyOf({}), global }, { ticket: "heavy" });
    for (let start = 0; start < 9; start++) expect(place.wait(second).fit({ global: keyOf(bucket) }, 1)).toBe(1);
  });

  it("that waits for its day's budget leaves what is left of it to others", () => {
    const place = new Place();
    const period = { index: 0, fromUs: 0, untilUs: 86_400 * second };
    const daily = (cost: number) => ({ host: keyOf({ quota: 9, calendar: "day UTC" }, { cost, period }) });
    expect(place.fit(daily(1), 6)).toBe(6);
    expect(place.fit(daily(5), 1, { ticket: "heavy" })).toBe(0);
    expect(place.wait(second).fit(daily(1), 1)).toBe(1);
  });
});
