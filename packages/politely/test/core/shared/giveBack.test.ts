import { expect, it } from "vitest";
import { keyOf, settleOf } from "../../../src/testing/store/operations.js";
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
  const three = { ...settleOf(place.from(), starts[3], { isUnused: true }), unusedCount: 3 };
  place.send(["host"], three);
  expect(place.state("host").starts).toBe(1);
});
