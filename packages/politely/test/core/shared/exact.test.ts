import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TakenStart } from "../../../src/testing/store/operations.js";
import { anySpec, costBound, spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { fitsAt } from "../../oracle/fitsAt.js";
import { hourUs, type LimitSpec } from "../../oracle/spec.js";
import { specViolation } from "../../oracle/violations.js";
import { anyDeeds, Fleet, sharedKey } from "./history.js";
import { Place } from "./place.js";

const anyWorld = (horizonMs: number, returns: boolean) =>
  fc.record({ host: anySpec({ quota: true }), global: anySpec(), proxy: anySpec({ answer: false }) }).chain((specs) =>
    fc.record({
      specs: fc.constant(specs as Readonly<Record<string, LimitSpec>>),
      beginUs: fc.constantFrom(1_000_000_000, hourUs - 2_000_000, 1_700_000_000_000_000),
      leaseUs: fc.constantFrom(300_000, 5_000_000, 30_000_000),
      deeds: anyDeeds({
        names: Object.keys(specs),
        maxCost: costBound(...Object.values(specs)),
        horizonMs,
        returns,
      }),
    }),
  );

describe("whatever several processes do", () => {
  it("no interval holds more starts than any limit of any key allows, and a refusal takes nothing from any", () => {
    fc.assert(
      fc.property(anyWorld(50, true), ({ specs, beginUs, leaseUs, deeds }) => {
        const fleet = new Fleet(specs, leaseUs);
        fleet.place.nowUs = beginUs;
        fleet.play(deeds);
        expect(fleet.oddities).toEqual([]);
        for (const [name, spec] of Object.entries(specs)) {
          expect(specViolation(fleet.traceOf(name), spec)).toBe(undefined);
        }
      }),
      seeded(400),
    );
  });

  it("nobody is refused while every limit has room, and is told the first instant at which they all have", () => {
    fc.assert(
      fc.property(anyWorld(0, false), ({ specs, beginUs, leaseUs, deeds }) => {
        const fleet = new Fleet(specs, leaseUs);
        fleet.place.nowUs = beginUs;
        for (const deed of deeds) {
          const known = fleet.refusals.length;
          const before = Object.fromEntries(Object.keys(specs).map((name) => [name, fleet.traceOf(name)]));
          if (deed.do === "take" && deed.count > 1) continue;
          fleet.play([deed]);
          if (fleet.refusals.length === known) continue;
          const { names, operation, readyUs, hadLine, nowUs } = fleet.refusals[known];
          if (hadLine) continue;
          const cost = operation.keys[0].cost.rate;
          const fits = (atUs: number): boolean =>
            names.every((name) => fitsAt({ spec: specs[name], starts: before[name], cost, atUs }));
          expect(fits(nowUs)).toBe(false);
          const isFollowed = names.some(
            (name) => (specs[name].concurrency ?? 0) > 0 || specs[name].fromAnswer === true,
          );
          if (isFollowed) continue;
          expect(fits(readyUs - 1)).toBe(false);
          expect(fits(readyUs)).toBe(true);
        }
      }),
      seeded(300),
    );
  });

  it("what was started without asking, or cost more than was thought, leaves less for the next", () => {
    const anyDeed = fc.record({
      what: fc.constantFrom("take", "take", "record", "settle"),
      waitUs: fc.oneof(fc.constant(0), spanUs(50), spanUs(3_000)),
      units: fc.integer({ min: 0, max: 8 }),
      ages: fc.array(spanUs(2_000), { minLength: 1, maxLength: 3 }),
    });
    const anySpecs = anySpec({ answer: false, concurrency: false });
    fc.assert(
      fc.property(anySpecs, fc.array(anyDeed, { minLength: 5, maxLength: 50 }), (spec, deeds) => {
        const place = new Place();
        const wanted = { host: sharedKey(spec, 1, 0) };
        const starts: { atUs: number; cost: number; taken?: TakenStart }[] = [];
        for (const { what, waitUs, units, ages } of deeds) {
          const { nowUs } = place.wait(waitUs);
          const open = starts.find(({ taken }) => taken !== undefined);
          if (what === "take") {
            const [taken] = place.take(wanted).starts;
            if (taken === undefined) continue;
            const counted = starts.filter(({ cost }) => cost > 0);
            expect(fitsAt({ spec, starts: counted, cost: 1, atUs: nowUs })).toBe(true);
            starts.push({ atUs: nowUs, cost: 1, taken });
          } else if (what === "record") {
            const agesUs = ages.sort((a, b) => b - a);
            place.send(["host"], { kind: "record", ...place.from(), keys: [wanted.host], agesUs });
            starts.push(...agesUs.map((ageUs) => ({ atUs: nowUs - ageUs, cost: 1 })));
          } else if (open?.taken !== undefined) {
            place.settle(["host"], open.taken, { spent: units });
            Object.assign(open, { cost: units, taken: undefined });
          }
        }
      }),
      seeded(300),
    );
  });
});
