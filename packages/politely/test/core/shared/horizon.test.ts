import { describe, expect, it } from "vitest";
import { keyOf, type TakenStart } from "../../../src/testing/store/operations.js";
import { Place } from "./place.js";

const second = 1_000_000;
const hour = 3_600 * second;
const ahead = { horizonUs: 50_000 };

describe("a start within the horizon", () => {
  it("is granted for the very instant at which it is possible, and not one microsecond beyond", () => {
    const place = new Place();
    const host = keyOf({ gapUs: second });
    const { startedUs } = place.start({ host }).start;
    expect(place.wait(second - 50_001).fit({ host }, 1, ahead)).toBe(0);
    expect(place.wait(1).start({ host }, ahead).start.startedUs).toBe(startedUs + second);
  });

  it("is not granted beyond the end of a calendar period", () => {
    const place = new Place();
    place.nowUs = 11 * hour - 10_000;
    const period = { index: 10, fromUs: 10 * hour, untilUs: 11 * hour };
    const host = keyOf({ quota: 2, calendar: "hour UTC" }, { period });
    expect(place.fit({ host }, 9, ahead)).toBe(2);
    const paced = keyOf({ quota: 2, calendar: "hour UTC", gapUs: 10_000 }, { period });
    expect(new PlaceAt(11 * hour - 10_000).fit({ host: paced }, 9, ahead)).toBe(1);
  });

  it("is not granted on the guess that a place will lapse, which may be renewed", () => {
    const place = new Place();
    const host = keyOf({ concurrency: 1, gapUs: 1_000_000 });
    const taken = place.start({ host }, { leaseUs: 980_000 });
    place.wait(970_000);
    expect(place.fit({ host }, 1, ahead)).toBe(0);
    const { lost } = place.send(["host"], { kind: "renew", ...place.from(), places: [taken.place], leaseUs: second });
    expect(lost).toEqual([]);
    expect(place.wait(40_000).fit({ host }, 1)).toBe(0);
  });

  it("waits for the probe's answer when the probe was granted ahead", () => {
    const place = new Place();
    const host = keyOf({ gapUs: 1_000 });
    const taken = place.start({ host });
    place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: second } });
    const probe = place.wait(second - 20_000).start({ host }, ahead);
    expect(probe.start.startedUs).toBe(place.nowUs + 20_000);
    const { stop } = place.take({ host }, ahead).reply;
    expect(stop?.kind).toBe("probe");
    expect((stop?.turnUs ?? 0) - place.nowUs).toBeLessThan(300_000);
  });
});

describe("a start that was granted ahead, before a cooldown began", () => {
  const cooldownUs = [10 * second, 20 * second, 40 * second];

  function threeAhead(): { place: Place; starts: readonly TakenStart[] } {
    const place = new Place();
    const { starts } = place.take({ host: keyOf({ gapUs: 10_000 }) }, { count: 3, ...ahead });
    expect(starts).toHaveLength(3);
    place.wait(5_000);
    place.settle(["host"], starts[0], { answer: { kind: "rate_limited" }, cooldownUs });
    place.wait(30_000);
    return { place, starts };
  }

  it("belongs to that incident when its answer is bad", () => {
    const { place, starts } = threeAhead();
    const steps = starts
      .slice(1)
      .map((taken) => place.settle(["host"], taken, { answer: { kind: "rate_limited" }, cooldownUs }));
    expect(steps.map(({ steps: [step] }) => step)).toEqual([1, 1]);
  });

  it("does not end the climb when its answer is good", () => {
    const { place, starts } = threeAhead();
    place.settle(["host"], starts[1], { answer: { kind: "success" } });
    const host = keyOf({ gapUs: 10_000 });
    const probe = place.wait(10 * second).start({ host });
    const { steps } = place.settle(["host"], probe, { answer: { kind: "rate_limited" }, cooldownUs });
    expect(steps).toEqual([2]);
  });
});

class PlaceAt extends Place {
  constructor(nowUs: number) {
    super();
    this.nowUs = nowUs;
  }
}
