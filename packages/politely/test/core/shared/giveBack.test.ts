import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOf, settleOf, type TakenStart } from "../../../src/testing/store/operations.js";
import { seeded } from "../../laws/seeded.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const hour = 60 * minute;
const bucket = keyOf({ rateCount: 1, ratePerUs: 10 * second, burst: 5 });
const window = keyOf({ windows: [3, 10 * second, 1] });
const gap = keyOf({ gapUs: 10 * second });

it("gives back all of a window, a bucket and a gap when nothing came after", () => {
  for (const key of [bucket, window, gap]) {
    const place = new Place();
    const most = place.fit({ host: key }, 9);
    place.wait(hour);
    const before = place.text("host");
    const taken = place.start({ host: key });
    place.wait(second).settle(["host"], taken, { isUnused: true });
    expect(place.fit({ host: key }, 9)).toBe(most);
    expect(before).toBeDefined();
  }
});

it("takes nothing from starts after a reset when one from before it comes back unused", () => {
  const place = new Place();
  const early = place.start({ host: window });
  place.send(["host"], { kind: "set", ...place.from(), pauseUs: -1, reset: "pacing" });
  expect(place.wait(second).fit({ host: window }, 9)).toBe(3);
  place.settle(["host"], early, { isUnused: true });
  expect(place.fit({ host: window }, 9)).toBe(0);
});

it("does not take a start from before a reset for one that the site has yet to count", () => {
  const place = new Place();
  const early = place.start({ host: window });
  place.send(["host"], { kind: "set", ...place.from(), pauseUs: -1, reset: "pacing" });
  place.settle(["host"], early, { answer: { kind: "success", remaining: 100, resetUs: hour } });
  expect(place.wait(minute).fit({ host: window }, 1)).toBe(1);
});

it("takes nothing from other starts when the key was forgotten meanwhile", () => {
  const place = new Place();
  const early = place.start({ host: bucket });
  place.wait(10 * minute);
  expect(place.fit({ host: bucket }, 4)).toBe(4);
  expect(place.wait(second).fit({ host: bucket }, 9)).toBe(1);
  place.settle(["host"], early, { isUnused: true });
  expect(place.fit({ host: bucket }, 9)).toBe(0);
});

it("does not give back the gap of another start when the key was forgotten meanwhile", () => {
  const place = new Place();
  const early = place.start({ host: gap });
  place.wait(10 * minute).start({ host: gap });
  place.settle(["host"], early, { isUnused: true });
  expect(place.fit({ host: gap }, 1)).toBe(0);
});

it("gives back to a quota only in the period in which it was taken", () => {
  const place = new Place();
  const inPeriod = (index: number) =>
    keyOf({ quota: 2, calendar: "hour UTC" }, { period: { index, fromUs: index * hour, untilUs: (index + 1) * hour } });
  place.nowUs = 10 * hour + 59 * minute;
  const early = place.start({ host: inPeriod(10) });
  place.wait(2 * minute);
  expect(place.fit({ host: inPeriod(11) }, 9)).toBe(2);
  place.settle(["host"], early, { isUnused: true });
  expect(place.fit({ host: inPeriod(11) }, 9)).toBe(0);
  const late = new Place();
  late.nowUs = 10 * hour;
  const both = late.take({ host: inPeriod(10) }, { count: 2 }).starts;
  late.settle(["host"], both[0], { isUnused: true });
  expect(late.fit({ host: inPeriod(10) }, 9)).toBe(1);
});

it("takes nothing from a window that was made after the start", () => {
  const place = new Place();
  const early = place.start({ host: bucket });
  place.wait(second).start({ host: bucket });
  // The window knows of the last start only, and that one stays.
  const narrow = { host: keyOf({ windows: [1, 10 * second, 1] }) };
  expect(place.wait(second).fit(narrow, 1)).toBe(0);
  place.settle(["host"], early, { isUnused: true });
  expect(place.fit(narrow, 1)).toBe(0);
});

it("owes on top what cost more than was thought", () => {
  const place = new Place();
  const taken = place.start({ host: bucket });
  place.settle(["host"], taken, { spent: 4 });
  expect(place.fit({ host: bucket }, 9)).toBe(1);
});

it("what comes back unused does not count as a start, one or many at once", () => {
  const place = new Place();
  const host = keyOf({ windows: [100, 60_000_000, 1] });
  const { starts } = place.take({ host }, { count: 5 });
  place.settle(["host"], starts[4], { isUnused: true });
  expect(place.state("host").starts).toBe(4);
  giveBackAll(place, starts.slice(1, 4));
  expect(place.state("host").starts).toBe(1);
});

/** Gives back starts of one take as one. */
function giveBackAll(place: Place, starts: readonly TakenStart[]): void {
  const last = settleOf(place.from(), starts[starts.length - 1], { isUnused: true });
  const keys = last.keys.map((key, index) => ({ ...key, previousUs: starts[0].start.previousUs[index] }));
  const unusedAt = starts.flatMap(({ start }) => [start.startedUs, 1]);
  place.send(["host"], { ...last, keys, unusedAt });
}

describe("starts of several instants that come back as one", () => {
  const spread = keyOf({ windows: [4, 10 * second, 1], gapUs: second });

  it("take their units out of a window at the instants at which they were counted", () => {
    const place = new Place();
    const { starts } = place.take({ host: spread }, { count: 3, horizonUs: 5 * second });
    expect(starts.map(({ start }) => start.startedUs - place.nowUs)).toEqual([0, second, 2 * second]);
    place.wait(3 * second).start({ host: spread });
    giveBackAll(place, starts);
    expect(place.look({ host: spread })[0].windows[0]).toBe(1);
    // The other's start is there until its own time is over.
    expect(place.wait(10 * second - 1).look({ host: spread })[0].windows[0]).toBe(1);
    expect(place.wait(1).look({ host: spread })[0].windows[0]).toBe(0);
  });

  it("leave what another took at one of their instants", () => {
    const place = new Place();
    const host = keyOf({ windows: [4, 10 * second, 1] });
    place.start({ host });
    expect(place.wait(second).fit({ host }, 3)).toBe(3);
    place.wait(8 * second);
    const mine = place.take({ host }, { count: 3, horizonUs: 5 * second }).starts;
    const theirs = place.take({ host }, { count: 1, horizonUs: 5 * second }).starts;
    const aheadUs = [...mine, ...theirs].map(({ start }) => start.startedUs - place.nowUs);
    expect(aheadUs).toEqual([second, 2 * second, 2 * second, 2 * second]);
    giveBackAll(place, mine);
    // Until ten seconds after it.
    expect(place.wait(12 * second - 1).fit({ host }, 9)).toBe(3);
  });

  it("take the units of a grouped window out of the groups that they are in", () => {
    const place = new Place();
    const host = keyOf({ windows: [40, 100 * second, 4 * second], gapUs: second });
    const mine = place.take({ host }, { count: 10, horizonUs: 10 * second }).starts;
    place.wait(10 * second).start({ host });
    giveBackAll(place, mine);
    expect(place.look({ host })[0].windows[0]).toBe(1);
  });

  it("give the gap back, of all of them, unless somebody started later", () => {
    const alone = new Place();
    const first = alone.start({ host: gap });
    const ahead = alone.take({ host: gap }, { count: 3, horizonUs: 30 * second }).starts;
    giveBackAll(alone, ahead);
    expect(alone.state("host").lastUs).toBe(first.start.startedUs);
    const crowd = new Place();
    const mine = crowd.take({ host: gap }, { count: 3, horizonUs: 30 * second }).starts;
    const theirs = crowd.take({ host: gap }, { horizonUs: 30 * second }).starts[0];
    giveBackAll(crowd, mine);
    expect(crowd.state("host").lastUs).toBe(theirs.start.startedUs);
  });

  it("give back to a quota and a bucket what all of them took", () => {
    const place = new Place();
    const host = keyOf(
      { quota: 5, calendar: "hour UTC", rateCount: 1, ratePerUs: second, burst: 5 },
      { period: { index: 0, fromUs: 0, untilUs: hour } },
    );
    const { starts } = place.take({ host }, { count: 5 });
    giveBackAll(place, starts.slice(2));
    expect(place.fit({ host }, 9)).toBe(3);
  });

  it("take nothing out of a younger window, which knows of the last of them only", () => {
    const place = new Place();
    const { starts } = place.take({ host: gap }, { count: 2, horizonUs: 10 * second });
    const narrow = keyOf({ windows: [5, 60 * second, 1] });
    // And of one that comes after it.
    place.wait(second).start({ host: narrow }, { horizonUs: 20 * second });
    expect(place.look({ host: narrow })[0].windows[0]).toBe(2);
    giveBackAll(place, starts);
    expect(place.look({ host: narrow })[0].windows[0]).toBe(2);
  });

  it("never make a window forget a start that was used", () => {
    const step = fc.record({
      waitUs: fc.constantFrom(0, second, second, 3 * second),
      take: fc.constantFrom(0, 1, 3, 4),
      horizonUs: fc.constantFrom(0, 9 * second),
      // Which run comes back, counted from the last (0: none), and how many of it were used.
      back: fc.constantFrom(0, 0, 0, 1, 2),
      used: fc.nat({ max: 1 }),
    });
    const rules = fc.record({ gapUs: fc.constantFrom(0, 0, second / 2), grainUs: fc.constantFrom(1, second) });
    const property = fc.property(
      rules,
      fc.array(step, { minLength: 20, maxLength: 40 }),
      ({ gapUs, grainUs }, steps) => {
        const place = new Place();
        const host = keyOf({ windows: [6, 10 * second, grainUs], gapUs });
        const runs: TakenStart[][] = [];
        for (const { waitUs, take, horizonUs, back, used } of steps) {
          place.wait(waitUs);
          if (take > 0) runs.push([...place.take({ host }, { count: take, horizonUs }).starts]);
          const rest = back === 0 ? [] : (runs.at(-back)?.splice(used) ?? []);
          if (rest.length > 0) giveBackAll(place, rest);
          const startedUs = runs.flat().map(({ start }) => start.startedUs);
          const inside = startedUs.filter((atUs) => atUs + 10 * second > place.nowUs).length;
          expect(place.look({ host })[0].windows[0]).toBeGreaterThanOrEqual(inside);
        }
      },
    );
    fc.assert(property, seeded(300));
  });
});
