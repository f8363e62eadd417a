import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SharedRule, TakeKey } from "../../../src/shared/operation.js";
import { keyOf, type TakenStart } from "../../../src/testing/store/operations.js";
import { anySpec, spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { fitsAt } from "../../oracle/fitsAt.js";
import { pickFrom } from "../../oracle/script.js";
import { hourUs } from "../../oracle/spec.js";
import { sharedKey } from "./history.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const leaseUs = second;
const free = keyOf({ gapUs: 1 });

const hourly: TakeKey = keyOf({ quota: 3, calendar: "hour UTC" }, { period: { index: 0, fromUs: 0, untilUs: hourUs } });
const idle: readonly (readonly [string, TakeKey])[] = [
  ["a window", keyOf({ windows: [3, 10 * minute, 1] })],
  ["a window from the answer", keyOf({ windows: [3, 10 * minute, 1], fromAnswer: true })],
  ["a bucket", keyOf({ rateCount: 1, ratePerUs: 10 * minute, burst: 3 })],
  ["a calendar budget", hourly],
];

/** Takes and gives back, if anything was granted. */
function use(place: Place, host: TakeKey, count: number): number {
  const { starts } = place.take({ host }, { count, leaseUs });
  for (const taken of starts) place.settle(["host"], taken);
  return starts.length;
}

describe.each(idle)("%s that nobody has used for longer than a lease", (_title, strict) => {
  it("binds nobody else, and still knows what was started under it", () => {
    const place = new Place();
    expect(use(place, strict, 5)).toBe(3);
    for (let round = 0; round < 4; round++) {
      const { reply } = place.wait(30 * second).take({ host: free }, { leaseUs });
      expect([reply.starts.length, reply.stricterAt]).toEqual([1, -1]);
    }
    expect(use(place.wait(second), strict, 5)).toBe(0);
  });

  it("is forgotten once that has passed, however busy the others are", () => {
    const place = new Place();
    use(place, strict, 5);
    for (let round = 0; round < 140; round++) use(place.wait(30 * second), free, 1);
    expect(place.state("host").tracks.map(({ ruleId }) => ruleId)).toEqual([free.ruleId]);
  });

  it("gets nothing back for what others return", () => {
    const place = new Place();
    expect(use(place, strict, 5)).toBe(3);
    const others: TakenStart[] = [];
    for (let round = 0; round < 9; round++) others.push(place.wait(5 * second).start({ host: free }, { leaseUs }));
    for (const taken of others) place.settle(["host"], taken, { isUnused: true });
    expect(use(place.wait(second), strict, 5)).toBe(0);
  });
});

describe("a policy that comes back", () => {
  it("waits for no more than an empty bucket, whatever others did meanwhile", () => {
    const place = new Place();
    const strict = keyOf({ rateCount: 1, ratePerUs: minute, burst: 2 });
    use(place, strict, 1);
    place.wait(2 * second);
    for (let round = 0; round < 500; round++) use(place.wait(1_000), free, 1);
    const keys = [free];
    place.send(["host"], { kind: "record", ...place.from(), keys, agesUs: [0], counts: [1_000] });
    const { stop } = place.wait(second).take({ host: strict }, { leaseUs }).reply;
    expect(stop?.kind).toBe("rate");
    expect((stop?.readyUs ?? 0) - place.nowUs).toBeLessThanOrEqual(minute);
  });

  it("gives nobody a place to look after for a limit that is not in use", () => {
    const place = new Place();
    use(place, keyOf({ concurrency: 1, windows: [3, minute, 1], fromAnswer: true }), 1);
    place.wait(2 * second).start({ host: free }, { leaseUs });
    expect(place.state("host").places).toEqual([]);
  });

  it("counts what was spent in another calendar as spent in its own", () => {
    const place = new Place();
    expect(use(place, hourly, 5)).toBe(3);
    const daily: Partial<SharedRule> = { quota: 4, calendar: "day UTC" };
    const period = { index: 0, fromUs: 0, untilUs: 24 * hourUs };
    expect(use(place.wait(2 * second), keyOf(daily, { period }), 5)).toBe(1);
  });

  it("has kept to its limits over all that it has started itself, whoever else was there", () => {
    const anyDeed = fc.record({
      policy: fc.constantFrom(0, 0, 1),
      count: fc.constantFrom(1, 1, 4),
      waitUs: fc.oneof(fc.constant(0), spanUs(300), spanUs(2_500), spanUs(2_500), fc.constant(20 * minute)),
      settles: fc.option(fc.nat({ max: 9 }), { freq: 2, nil: undefined }),
      isUnused: fc.boolean(),
      leaves: fc.constantFrom(false, false, false, true),
    });
    const anySpecs = fc.tuple(anySpec({ quota: true }), anySpec({ quota: true }));
    fc.assert(
      fc.property(anySpecs, fc.array(anyDeed, { minLength: 5, maxLength: 60 }), (specs, deeds) => {
        const place = new Place();
        const own = specs.map((): OwnStart[] => []);
        for (const { policy, count, waitUs, settles, isUnused, leaves } of deeds) {
          const { nowUs } = place.wait(waitUs);
          const open = own.flat().filter(({ isOpen }) => isOpen);
          if (settles !== undefined) settle(place, pickFrom(open, settles), isUnused);
          const member = `process-${policy}`;
          const host = sharedKey(specs[policy], 1, nowUs);
          for (const taken of place.take({ host }, { count, leaseUs, member }).starts) {
            const starts = own[policy].map(({ start }) => start);
            expect(fitsAt({ spec: specs[policy], starts, cost: 1, atUs: nowUs })).toBe(true);
            const start = { atUs: nowUs, cost: 1, releasedUs: nowUs + leaseUs, unused: false };
            own[policy].push({ taken, isOpen: true, start });
          }
          if (leaves) place.send(["host"], { kind: "leave", ...place.from(), ticket: member });
        }
      }),
      seeded(300),
    );
  });
});

/** A start of one policy, as the oracle wants it. */
interface OwnStart {
  readonly taken: TakenStart;
  isOpen: boolean;
  readonly start: { readonly atUs: number; readonly cost: number; releasedUs: number; unused: boolean };
}

/** Gives a start back, before or after its place has lapsed. */
function settle(place: Place, own: OwnStart | undefined, isUnused: boolean): void {
  if (own === undefined) return;
  own.isOpen = false;
  own.start.unused = isUnused;
  own.start.releasedUs = Math.min(place.nowUs, own.start.releasedUs);
  place.settle(["host"], own.taken, { isUnused });
}
