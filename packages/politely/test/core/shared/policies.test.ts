import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOf } from "../../../src/testing/store/operations.js";
import { anySpec, spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { fitsAt } from "../../oracle/fitsAt.js";
import type { LimitSpec } from "../../oracle/spec.js";
import type { Start } from "../../oracle/trace.js";
import { windowViolation } from "../../oracle/violations.js";
import { sharedKey } from "./history.js";
import { Place } from "./place.js";

const second = 1_000_000;
const leaseUs = 3 * second;
const counting = { concurrency: false, answer: false } as const;

describe("two policies for one key", () => {
  const anyDeed = fc.record({
    policy: fc.constantFrom(0, 0, 1),
    count: fc.constantFrom(1, 1, 4),
    waitUs: fc.oneof(fc.constant(0), spanUs(100), spanUs(4_000)),
  });

  it("both hold, for as long as each is in use and one lease longer", () => {
    fc.assert(
      fc.property(
        fc.tuple(anySpec(counting), anySpec(counting)),
        fc.array(anyDeed, { minLength: 5, maxLength: 60 }),
        (specs, deeds) => {
          const place = new Place();
          const starts: Start[] = [];
          /** How many starts there were before each policy came into use, and until when it counts. */
          const lives = specs.map(() => ({ before: 0, untilUs: -1 }));
          for (const { policy, count, waitUs } of deeds) {
            const { nowUs } = place.wait(waitUs);
            const live = lives[policy];
            if (live.untilUs <= nowUs) live.before = starts.length;
            live.untilUs = nowUs + leaseUs;
            const { starts: granted, reply } = place.take(
              { host: sharedKey(specs[policy], 1, nowUs) },
              { count, leaseUs },
            );
            for (const [index, { before, untilUs }] of lives.entries()) {
              for (let taken = 0; untilUs > nowUs && taken < granted.length; taken++) {
                const now = granted.slice(0, taken).map(() => ({ atUs: nowUs, cost: 1 }));
                const known = [...starts.slice(before), ...now];
                expect(fitsAt({ spec: specs[index], starts: known, cost: 1, atUs: nowUs })).toBe(true);
              }
            }
            const isBoth = lives.every(({ untilUs }) => untilUs > nowUs) && isOther(specs[0], specs[1]);
            expect(reply.stricterAt).toBe(isBoth ? 0 : -1);
            for (const { start } of granted)
              starts.push({ atUs: start.startedUs, cost: 1, releasedUs: start.startedUs });
          }
        },
      ),
      seeded(300),
    );
  });

  it("keep a policy alive while somebody who has it waits for a turn, at every key", () => {
    const place = new Place();
    const strict = { host: keyOf({ gapUs: 20 * second }), global: keyOf({ gapUs: 5 * second }) };
    place.start(strict, { leaseUs: second });
    place.take(strict, { leaseUs: second, ticket: "waiting" });
    const loose = { global: keyOf({ gapUs: 1 }) };
    expect(place.wait(15 * second).fit(loose, 1, { leaseUs: second })).toBe(1);
    expect(place.wait(second).fit(loose, 1, { leaseUs: second })).toBe(0);
    expect(place.wait(10 * second).fit(loose, 1, { leaseUs: second })).toBe(1);
    expect(place.wait(second).fit(loose, 1, { leaseUs: second })).toBe(1);
  });

  it("are seen by a look as a take would see them", () => {
    const place = new Place();
    const loose = { host: keyOf({ gapUs: 1 }) };
    place.start({ host: keyOf({ gapUs: 20 * second }) }, { leaseUs: second });
    expect(place.wait(second - 1).look(loose)[0].stops).toHaveLength(1);
    expect(place.wait(1).look(loose)[0].stops).toEqual([]);
    expect(place.fit(loose, 1)).toBe(1);
  });

  it("are at most sixteen at a time", () => {
    const place = new Place();
    for (let gapUs = 1; gapUs <= 40; gapUs++) place.wait(100).take({ host: keyOf({ gapUs }) });
    expect(place.state("host").tracks.map(({ rule }) => rule.gapUs)).toEqual(
      Array.from({ length: 16 }, (_, n) => n + 25),
    );
  });
});

describe("a change of policy", () => {
  const anyPast = fc.array(fc.record({ count: fc.constantFrom(1, 2, 5), waitUs: spanUs(700) }), {
    minLength: 1,
    maxLength: 15,
  });

  function past(
    spec: LimitSpec,
    deeds: typeof anyPast extends fc.Arbitrary<infer Deeds> ? Deeds : never,
  ): [Place, Start[]] {
    const place = new Place();
    const starts: Start[] = [];
    for (const { count, waitUs } of deeds) {
      place.wait(waitUs);
      const { starts: granted } = place.take({ host: sharedKey(spec, 1, place.nowUs) }, { count, leaseUs: 1 });
      for (const { start } of granted) starts.push({ atUs: start.startedUs, cost: 1 });
    }
    place.wait(1);
    return [place, starts];
  }

  it("lets no window hold more than it may, as far back as the old one remembers", () => {
    const anyWindow = fc.record({ count: fc.integer({ min: 1, max: 6 }), perUs: spanUs(3_000) });
    fc.assert(
      fc.property(anyWindow, anyWindow, anyPast, (from, to, deeds) => {
        const [place, starts] = past({ windows: [from] }, deeds);
        const changedUs = place.nowUs;
        for (let turn = 0; turn < 8; turn++) {
          const { starts: granted } = place.take(
            { host: sharedKey({ windows: [to] }, 1, 0) },
            { count: 3, leaseUs: 1 },
          );
          for (const { start } of granted) starts.push({ atUs: start.startedUs, cost: 1 });
          place.wait(Math.ceil(to.perUs / 3));
        }
        if (to.perUs <= from.perUs) expect(windowViolation(starts, to, changedUs)).toBe(undefined);
      }),
      seeded(300),
    );
  });

  it("lets nothing be spent at once that could not have been spent before", () => {
    const anyRate = fc.record({
      count: fc.integer({ min: 1, max: 9 }),
      perUs: spanUs(3_000),
      burst: fc.integer({ min: 1, max: 6 }),
    });
    fc.assert(
      fc.property(anyRate, anyRate, anyPast, (from, to, deeds) => {
        const [before] = past({ rate: from }, deeds);
        const [after] = past({ rate: from }, deeds);
        const isIdle = before.look({ host: sharedKey({ rate: from }, 1, 0) })[0].owed === 0;
        const allowed = isIdle ? to.burst : before.fit({ host: sharedKey({ rate: from }, 1, 0) }, 20);
        expect(after.fit({ host: sharedKey({ rate: to }, 1, 0) }, 20)).toBeLessThanOrEqual(allowed);
      }),
      seeded(300),
    );
  });

  it("counts the last start in a bucket or window that is new", () => {
    for (const rule of [
      { rateCount: 1, ratePerUs: 10 * second },
      { windows: [1, 10 * second, 1] },
      { gapUs: 10 * second },
    ]) {
      const place = new Place();
      place.start({ host: keyOf({}) }, { leaseUs: 1 });
      expect(place.wait(9 * second).fit({ host: keyOf(rule) }, 1)).toBe(0);
      expect(place.wait(second).fit({ host: keyOf(rule) }, 1)).toBe(1);
    }
  });

  it("counts those in flight when windows no longer run from the answer", () => {
    const place = new Place();
    place.take({ host: keyOf({ windows: [2, 10 * second, 1], fromAnswer: true }) }, { count: 2, leaseUs: 60 * second });
    place.send(["host"], { kind: "leave", ...place.from(), ticket: "" });
    expect(place.wait(61 * second).state("host").tracks).toHaveLength(1);
    const still = new Place();
    still.take(
      { host: keyOf({ windows: [2, 10 * second, 1], fromAnswer: true }) },
      { count: 2, maxHoldUs: 10 * second },
    );
    expect(still.wait(second).fit({ host: keyOf({ windows: [2, 10 * second, 1] }) }, 1)).toBe(0);
  });

  it("takes nothing off a new bucket when a start from before it comes back unused, one of the same instant too", () => {
    const place = new Place();
    const { starts } = place.take({ host: keyOf({ windows: [10, 60 * second, 1] }) }, { count: 3 });
    const bucket = { host: keyOf({ rateCount: 1, ratePerUs: 60 * second }) };
    expect(place.fit(bucket, 1)).toBe(0);
    for (const taken of starts.slice(1)) place.settle(["host"], taken, { isUnused: true });
    expect(place.fit(bucket, 1)).toBe(0);
  });

  it("keeps a gap from the last start when gaps begin to run from answers", () => {
    const place = new Place();
    const { startedUs } = place.start({ host: keyOf({ gapUs: 10 * second }) }, { leaseUs: 1 }).start;
    const { stop } = place.wait(second).take({ host: keyOf({ gapUs: 8 * second, fromAnswer: true }) }).reply;
    expect(stop?.readyUs).toBe(startedUs + 8 * second);
  });
});

function isOther(one: LimitSpec, other: LimitSpec): boolean {
  return sharedKey(one, 1, 0).ruleId !== sharedKey(other, 1, 0).ruleId;
}
