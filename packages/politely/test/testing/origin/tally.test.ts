import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VirtualClock, VirtualOrigin } from "../../../src/testing/index.js";
import { seeded } from "../../laws/seeded.js";

/** An origin that was called at these instants. */
function calledAt(instantsMs: readonly number[], keepRequests = 1_000): VirtualOrigin {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ clock, keepRequests });
  for (const atMs of instantsMs) {
    clock.stall(Math.max(0, atMs - clock.now()));
    void origin.fetch("https://a.test/");
  }
  return origin;
}

describe("the counts of an origin", () => {
  it("know the most arrivals in any interval that is open on the left and closed on the right", () => {
    const origin = calledAt([0, 400, 999, 1_000, 1_400, 2_000]);
    expect(origin.mostInAny(1)).toBe(1);
    expect(origin.mostInAny(1.001)).toBe(2);
    expect(origin.mostInAny(401)).toBe(2);
    expect(origin.mostInAny(402)).toBe(3);
    // 0 and 1,000 are exactly a second apart, and never in one interval.
    expect(origin.mostInAny(1_000)).toBe(3);
    expect(origin.mostInAny(1_001)).toBe(4);
    expect(origin.mostInAny(Number.POSITIVE_INFINITY)).toBe(6);
    expect(origin.shortestGapMs).toBe(1);
  });

  it("agree with looking at every interval that begins just before an arrival", () => {
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5_000 })), { maxLength: 60 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 20_000 }), (gapsUs, periodUs) => {
        let us = 0;
        const instantsUs = gapsUs.map((gap) => (us += gap));
        const origin = calledAt(instantsUs.map((each) => each / 1_000));
        const most = instantsUs.map(
          (from) => instantsUs.filter((each) => each >= from && each < from + periodUs).length,
        );
        expect(origin.mostInAny(periodUs / 1_000)).toBe(Math.max(0, ...most));
        expect(origin.shortestGapMs).toBe(Math.min(Number.POSITIVE_INFINITY, ...gapsUs.slice(1)) / 1_000);
        expect(origin.total).toBe(gapsUs.length);
      }),
      seeded(300),
    );
  });

  it("say nothing before the first arrival", () => {
    const origin = calledAt([]);
    const nothing = { total: 0, refused: 0, inFlight: 0, peakInFlight: 0, arrivalsDuringBan: 0, requests: [] };
    expect(origin).toMatchObject({ ...nothing, shortestGapMs: Number.POSITIVE_INFINITY, arrivalsBeforeRetryAfter: 0 });
    expect(origin.mostInAny(1_000)).toBe(0);
  });

  it("keep the newest requests only, and every arrival", () => {
    const origin = calledAt([0, 1, 2, 3, 4, 5, 6], 3);
    expect(origin.requests.map(({ atMs }) => atMs)).toEqual([4, 5, 6]);
    expect([origin.total, origin.mostInAny(10)]).toEqual([7, 7]);
  });

  it.each([0, -1, Number.NaN])("refuse a period of %s", (periodMs) => {
    expect(() => calledAt([0]).mostInAny(periodMs)).toThrow(RangeError);
  });

  it("are of one host when asked, and of all hosts otherwise", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, latency: 100 });
    const b = origin.host("b.test");
    void origin.fetch("https://a.test/1");
    clock.stall(10);
    void origin.fetch("https://b.test/2?q=x", { method: "PUT", headers: { "X-One": "1" } });
    clock.stall(30);
    void origin.fetch("https://a.test/3");
    expect([origin.inFlight, b.inFlight, origin.host("a.test").peakInFlight]).toEqual([3, 1, 2]);
    await clock.runToEnd();
    expect([origin.shortestGapMs, origin.host("a.test").shortestGapMs]).toEqual([10, 40]);
    expect(b.requests).toEqual([
      {
        atMs: 10,
        method: "PUT",
        url: "https://b.test/2?q=x",
        host: "b.test",
        path: "/2?q=x",
        headers: { "x-one": "1" },
        index: 0,
        status: 200,
        refusedBy: undefined,
        trueWaitMs: 0,
        heldBackMs: 0,
        fault: undefined,
      },
    ]);
    expect([origin.inFlight, origin.peakInFlight, b.peakInFlight]).toEqual([0, 3, 1]);
  });
});
