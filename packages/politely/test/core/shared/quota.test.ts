import { describe, expect, it } from "vitest";
import type { TakeKey } from "../../../src/shared/operation.js";
import { keyOf } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const hour = 60 * minute;

function hourly(index: number, count = 2, slackUs = 0): TakeKey {
  const period = { index, fromUs: index * hour, untilUs: (index + 1) * hour + slackUs };
  return keyOf({ quota: count, calendar: "hour UTC" }, { period });
}

function at(nowUs: number): Place {
  const place = new Place();
  place.nowUs = nowUs;
  return place;
}

describe("a calendar budget", () => {
  it("is full again when the next period begins, and not before", () => {
    const place = at(10 * hour);
    expect(place.fit({ host: hourly(10) }, 9)).toBe(2);
    const { stop } = place.take({ host: hourly(10) }).reply;
    expect(stop).toMatchObject({ kind: "quota", readyUs: 11 * hour });
    expect(place.wait(hour - 1).fit({ host: hourly(10) }, 9)).toBe(0);
    expect(place.wait(1).fit({ host: hourly(11) }, 9)).toBe(2);
  });

  it("does nothing for a period that does not run now, and says so", () => {
    for (const index of [9, 11]) {
      const place = at(10 * hour + 1);
      const { reply } = place.take({ host: hourly(index) });
      expect(reply).toMatchObject({ isStalePeriod: true, starts: [], stop: undefined });
      expect(place.fit({ host: hourly(10) }, 9)).toBe(2);
    }
  });

  it("counts what is recorded with a wrong period in the one that runs, and begins no other", () => {
    for (const index of [9, 11]) {
      const place = at(10 * hour + 1);
      expect(place.fit({ host: hourly(10, 3) }, 2)).toBe(2);
      place.send(["host"], { kind: "record", ...place.from(), keys: [hourly(index, 3)], agesUs: [0] });
      expect(place.take({ host: hourly(10, 3) }).reply.stop).toMatchObject({ kind: "quota", readyUs: 11 * hour });
    }
  });

  it("stays spent for a process whose period ends later than the others say", () => {
    const place = at(10 * hour);
    expect(place.fit({ host: hourly(10) }, 9)).toBe(2);
    place.nowUs = 11 * hour + second;
    const late = { host: hourly(10, 2, minute) };
    expect(place.fit(late, 9)).toBe(0);
    expect(place.take(late).reply.stop?.readyUs).toBe(11 * hour + minute);
  });

  it("stays spent when the clock is set back into an earlier period", () => {
    const place = at(10 * hour + minute);
    expect(place.fit({ host: hourly(10) }, 9)).toBe(2);
    place.nowUs = 9 * hour + 59 * minute;
    expect(place.fit({ host: hourly(9) }, 9)).toBe(0);
    place.nowUs = 10 * hour + 59 * minute + 59 * second;
    expect(place.fit({ host: hourly(10) }, 9)).toBe(0);
    place.nowUs = 11 * hour;
    expect(place.fit({ host: hourly(11) }, 9)).toBe(2);
  });

  it("counts what others start in a new period before anybody of its own policy says which one it is", () => {
    const place = at(10 * hour + 59 * minute + 50 * second);
    const other = { host: keyOf({ gapUs: 1 }) };
    expect(place.fit({ host: hourly(10) }, 1)).toBe(1);
    place.wait(15 * second);
    expect(place.fit(other, 1)).toBe(1);
    expect(place.wait(second).fit(other, 1)).toBe(1);
    expect(place.wait(second).fit({ host: hourly(11) }, 9)).toBe(0);
    expect(place.take({ host: hourly(11) }).reply.stop?.kind).toBe("quota");
  });
});
