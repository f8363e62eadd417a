import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rateOwedAt } from "../../../src/shared/rate.js";
import { keyOf } from "../../../src/testing/store/operations.js";
import { spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { Place } from "./place.js";

const second = 1_000_000;
const minute = 60 * second;
const leaseUs = second;

describe("a policy that nobody had before", () => {
  it("knows the starts that the others know, also beside a longer window that has long been full", () => {
    const place = new Place();
    const hourly = keyOf({ windows: [5, 60 * minute, 1] });
    expect(place.fit({ host: hourly }, 10, { leaseUs })).toBe(5);
    const busy = keyOf({ windows: [100, minute, 1] });
    place.wait(2 * second);
    for (let start = 0; start < 95; start++) place.wait(20_000).start({ host: busy });
    const next = keyOf({ windows: [90, minute, 1] });
    expect(place.wait(31 * second).fit({ host: next }, 100, { leaseUs })).toBe(0);
  });

  it("owes no more than the others, though there are so many that they forget one another in turn", () => {
    const place = new Place();
    let starts = 0;
    for (let round = 0; round < 1_000; round++) {
      const host = keyOf({ rateCount: 10, ratePerUs: second, burst: 1 + (round % 20) });
      starts += place.wait(10_000).fit({ host }, 1);
    }
    expect(starts).toBeGreaterThan(90);
  });

  it.each([
    { changes: 14, everyUs: 2 * second },
    { changes: 16, everyUs: 6 * minute },
    { changes: 600, everyUs: 2 * second },
    { changes: 600, everyUs: 6 * minute },
  ])("owes an empty bucket at most when sizes went to and fro $changes times, every $everyUs µs", (terms) => {
    const place = new Place();
    const hourly = { rateCount: 1, ratePerUs: 60 * minute };
    place.start({ host: keyOf({ ...hourly, burst: 20 }) }, { leaseUs });
    for (let change = 0; change < terms.changes; change++) {
      const burst = change % 2 === 0 ? 1 : 20;
      // The gap is another each time, so that each policy is one that nobody had before.
      const host = keyOf({ ...hourly, burst, gapUs: 1 + change });
      place.wait(terms.everyUs).fit({ host }, 1, { leaseUs });
      const [{ owed }] = place.look({ host });
      expect(owed).toBeLessThanOrEqual(20 * hourly.ratePerUs);
    }
  });

  it("has no more to spend at once than any other that owes something", () => {
    const anyBucket = fc.record({
      rateCount: fc.integer({ min: 1, max: 9 }),
      ratePerUs: fc.oneof(fc.constant(minute), fc.integer({ min: 1, max: 60 * minute })),
      burst: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1_000_000 })),
    });
    const anyDeed = fc.record({ bucket: anyBucket, count: fc.nat({ max: 30 }), waitUs: spanUs(2_000) });
    fc.assert(
      fc.property(fc.array(anyDeed, { minLength: 2, maxLength: 40, size: "max" }), (deeds) => {
        const place = new Place();
        for (const { bucket, count, waitUs } of deeds) {
          const { nowUs } = place.wait(waitUs);
          const host = keyOf(bucket);
          const { tracks } = place.state("host");
          const isNew = tracks.every(({ ruleId }) => ruleId !== host.ruleId);
          const [{ owed }] = place.look({ host });
          const room = bucket.burst * bucket.ratePerUs - owed;
          for (const track of isNew ? tracks : []) {
            const { rateCount, ratePerUs, burst } = track.rule;
            const debt = rateOwedAt(rateCount, track.owed, track.owedUs, nowUs);
            const left = Math.max(0, Math.floor((burst * ratePerUs - debt) / ratePerUs));
            if (debt > 0) expect(Math.floor(room / bucket.ratePerUs)).toBeLessThanOrEqual(left);
          }
          place.fit({ host }, count, { leaseUs: 1 });
        }
      }),
      seeded(500),
    );
  });

  it("knows of every start as much as any other that was there then, within both their windows", () => {
    const anyWindow = fc.record({ count: fc.constantFrom(1, 2, 12, 15), perUs: fc.constantFrom(20, 90) });
    const anyDeed = fc.record({
      policy: fc.nat({ max: 9 }),
      count: fc.constantFrom(1, 3, 15),
      window: fc.constantFrom(1, 1, 1, 2),
      waitUs: fc.oneof(spanUs(100), fc.constant(leaseUs), fc.constant(leaseUs)),
    });
    fc.assert(
      fc.property(
        fc.array(anyWindow, { minLength: 3, maxLength: 10, size: "max" }),
        fc.array(anyDeed, { minLength: 3, maxLength: 12, size: "max" }),
        (windows, deeds) => {
          const place = new Place();
          const policies = windows.map(({ count, perUs }) => new Policy(count, perUs * second));
          const starts: Started[] = [];
          for (const { policy, count, window, waitUs } of deeds) {
            const own = policies[policy % policies.length];
            place.wait(waitUs);
            const units = Math.min(window, own.count);
            const host = keyOf({ windows: [own.count, own.perUs, 1] }, { cost: units });
            for (let number = 0; number < count; number++) {
              const { nowUs } = place.wait(1_000);
              own.use(nowUs);
              if (place.fit({ host }, 1, { leaseUs }) === 0) continue;
              starts.push({ atUs: nowUs, units });
              for (const known of policies) expect(own.knowsWith(known, starts, nowUs)).toBeLessThanOrEqual(own.count);
            }
          }
        },
      ),
      seeded(1_000),
    );
  });
});

interface Started {
  readonly atUs: number;
  readonly units: number;
}

/** A window, and since when and until when it was last known to be in use. */
class Policy {
  #sinceUs = Number.POSITIVE_INFINITY;
  #usedUs = 0;

  constructor(
    readonly count: number,
    readonly perUs: number,
  ) {}

  use(nowUs: number): void {
    if (!this.#isThere(nowUs)) this.#sinceUs = nowUs;
    this.#usedUs = nowUs + leaseUs;
  }

  /** How many units this window has to know of, if it learned from another: as many as that counts, and twice as many as that allows at most. */
  knowsWith(other: Policy, starts: readonly Started[], nowUs: number): number {
    if (!other.#isThere(nowUs)) return 0;
    const afterUs = Math.max(other.#sinceUs - 1, nowUs - Math.min(this.perUs, other.perUs));
    let units = 0;
    for (const start of starts) if (start.atUs > afterUs) units += start.units;
    return this === other ? units : Math.min(units, 2 * other.count);
  }

  /** It is in use, or something counts that was started while it was. */
  #isThere(nowUs: number): boolean {
    return nowUs < this.#usedUs + this.perUs;
  }
}
