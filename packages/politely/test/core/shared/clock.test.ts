import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOf, type TakenStart } from "../../../src/testing/store/operations.js";
import { anySpec, spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { pickFrom } from "../../oracle/script.js";
import type { LimitSpec } from "../../oracle/spec.js";
import type { Start } from "../../oracle/trace.js";
import { specViolation } from "../../oracle/violations.js";
import { sharedKey } from "./history.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const hour = 60 * minute;
const leaseUs = 4 * second;

type Deed =
  | { readonly do: "wait"; readonly us: number }
  | { readonly do: "back"; readonly us: number }
  | { readonly do: "take"; readonly count: number; readonly horizonUs: number }
  | { readonly do: "settle"; readonly pick: number; readonly isUnused: boolean };

const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("wait" as const), us: fc.oneof(spanUs(50), spanUs(3_000)) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("back" as const),
      us: fc.oneof(
        spanUs(900),
        spanUs(5_000),
        fc.integer({ min: 1, max: 100 }).map((minutes) => minutes * minute),
      ),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      count: fc.constantFrom(1, 3),
      horizonUs: fc.constantFrom(0, 50_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("settle" as const), pick: fc.nat({ max: 9 }), isUnused: fc.boolean() }),
  },
);

/** Plays deeds with a clock that is set back now and then, and gives the starts at the times at which they truly were. */
function play(spec: LimitSpec, deeds: readonly Deed[]): { readonly trace: Start[]; readonly longestUs: number } {
  const place = new Place();
  place.nowUs = 10 * hour;
  let behindUs = 0;
  const trueUs = (): number => place.nowUs + behindUs;
  const wanted = { host: sharedKey(spec, 1, place.nowUs) };
  const starts: { readonly taken: TakenStart; readonly atUs: number; releasedUs?: number; unused?: boolean }[] = [];
  let longestUs = 0;
  for (const deed of deeds) {
    if (deed.do === "wait") place.wait(deed.us);
    else if (deed.do === "back") {
      place.nowUs -= deed.us;
      behindUs += deed.us;
    } else if (deed.do === "take") {
      const { count, horizonUs } = deed;
      const { reply, starts: granted } = place.take(wanted, { count, horizonUs, leaseUs });
      for (const taken of granted) {
        starts.push({ taken, atUs: trueUs() + Math.max(0, taken.start.startedUs - reply.nowUs) });
      }
      longestUs = Math.max(longestUs, (reply.stop?.readyUs ?? 0) - place.nowUs);
    } else {
      const open = starts.filter(
        ({ releasedUs, atUs }) => releasedUs === undefined && (deed.isUnused || atUs <= trueUs()),
      );
      const start = pickFrom(open, deed.pick);
      if (start === undefined) continue;
      place.settle(["host"], start.taken, { isUnused: deed.isUnused });
      start.releasedUs = trueUs();
      start.unused = deed.isUnused;
    }
  }
  const trace = starts.map(({ atUs, releasedUs = Number.POSITIVE_INFINITY, unused = false }) => ({
    atUs,
    cost: 1,
    releasedUs: Math.min(releasedUs, atUs + leaseUs),
    unused,
  }));
  return { trace, longestUs };
}

/** The longest that any limit of a spec lets one request wait, or the holder of a place. */
function mostUs({ gapUs = 0, rate, windows = [] }: LimitSpec): number {
  const bucketUs = rate === undefined ? 0 : Math.ceil((rate.burst * rate.perUs) / rate.count);
  return Math.max(leaseUs, gapUs, bucketUs, ...windows.map(({ perUs }) => perUs));
}

describe("a clock that is set back", () => {
  it("by a little or by hours forgives nothing and lets nobody hang", () => {
    fc.assert(
      fc.property(anySpec(), fc.array(anyDeed, { minLength: 5, maxLength: 60 }), (spec, deeds) => {
        const { trace, longestUs } = play(spec, deeds);
        expect(specViolation(trace, spec)).toBe(undefined);
        expect(longestUs).toBeLessThanOrEqual(mostUs(spec) + 2.25 * second);
      }),
      seeded(400),
    );
  });

  it("by less than two seconds stands still", () => {
    const place = new Place();
    const host = keyOf({ gapUs: second });
    const { startedUs } = place.start({ host }).start;
    place.wait(-1.9 * second);
    const { reply } = place.take({ host });
    expect([reply.nowUs, reply.stop?.readyUs]).toEqual([startedUs, startedUs + second]);
  });

  it("by an hour takes cooldowns, pauses, places and those in line along", () => {
    const place = new Place();
    place.nowUs = 10 * hour;
    const host = keyOf({ concurrency: 1 });
    const taken = place.start({ host });
    place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: minute }, isOver: false });
    place.wait(-hour);
    expect(place.take({ host }).reply.stop).toMatchObject({ kind: "cooldown", readyUs: place.nowUs + minute });
    expect(place.look({ host })[0].held).toBe(1);
    place.wait(minute);
    expect(place.look({ host })[0].held).toBe(0);
    expect(place.fit({ host }, 1)).toBe(1);
  });

  it("puts nobody who waited before behind those who come after", () => {
    const place = new Place();
    place.nowUs = 10 * hour;
    const wanted = { host: keyOf({ gapUs: minute }) };
    const { startedUs } = place.start(wanted).start;
    const { turnUs, joinedUs } = { turnUs: startedUs + minute, joinedUs: place.nowUs };
    place.take(wanted, { ticket: "old" });
    place.wait(second - hour);
    const told = place.take(wanted, { ticket: "old", turnUs, joinedUs }).reply.stop?.turnUs ?? 0;
    expect(told).toBe(place.nowUs + minute);
    expect(place.wait(second).take(wanted, { ticket: "new" }).reply.stop?.turnUs).toBe(told + minute);
    place.nowUs = told;
    expect(place.fit(wanted, 1, { ticket: "old", turnUs: told, joinedUs })).toBe(1);
  });

  it("does not let a start of before take the units of a later one along when it comes back unused", () => {
    const place = new Place();
    place.nowUs = 10 * hour;
    const host = keyOf({ windows: [1, minute, 1] });
    const early = place.start({ host });
    place.wait(-2 * minute).take({ host });
    place.wait(2 * minute + second);
    expect(place.fit({ host }, 1)).toBe(1);
    place.settle(["host"], early, { isUnused: true });
    expect(place.fit({ host }, 1)).toBe(0);
  });
});

describe("clients whose times differ by less than two seconds", () => {
  const anyAsk = fc.record({ afterUs: fc.oneof(spanUs(50), spanUs(3_000)), behindUs: fc.nat(2 * second) });

  it("keep every limit exactly on the time that the key has seen", () => {
    fc.assert(
      fc.property(anySpec(), fc.array(anyAsk, { minLength: 5, maxLength: 60 }), (spec, asks) => {
        const place = new Place();
        place.nowUs = 10 * hour;
        const wanted = { host: sharedKey(spec, 1, place.nowUs) };
        let trueUs = place.nowUs;
        const trace: Start[] = [];
        for (const { afterUs, behindUs } of asks) {
          trueUs += afterUs;
          place.nowUs = trueUs - behindUs;
          for (const { start } of place.take(wanted, { leaseUs }).starts) {
            trace.push({ atUs: start.startedUs, cost: 1, releasedUs: start.startedUs + leaseUs, unused: false });
          }
        }
        expect(specViolation(trace, spec)).toBe(undefined);
      }),
      seeded(300),
    );
  });

  it("make no more starts together than one alone", () => {
    const place = new Place();
    const host = keyOf({ rateCount: 1, ratePerUs: second, burst: 1 });
    const beganUs = place.nowUs;
    let starts = 0;
    for (let step = 1; step <= 200; step++) {
      for (const behindUs of [0, 1.1 * second]) {
        place.nowUs = beganUs + step * 100_000 - behindUs;
        starts += place.fit({ host }, 1);
      }
    }
    expect(starts).toBe(20);
  });
});
