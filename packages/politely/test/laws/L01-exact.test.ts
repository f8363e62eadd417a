import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { hourQuotaViolation, specViolation } from "../oracle/violations.js";
import { anyEnding, anyScript, anySpec, costBound } from "./arbitraries.js";
import { play, traceOf } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes, worldViolation } from "./worlds.js";

const early = fc.constantFrom(0, 0.3, 0.8, 1);

describe("L1 exact", () => {
  it("keeps every window, bucket, gap and place of every host, scope and all together, whatever happens", async () => {
    const scene = anyWorld().chain((world) => {
      const cost = { hosts: worldHosts, scopes: worldScopes, maxCost: worldCost(world) };
      const chance = { priorities: true, tries: true, cancels: true, stalls: true, walls: true, endings: anyEnding };
      return fc.tuple(fc.constant(world), anyScript({ ...cost, ...chance }), early);
    });
    await fc.assert(
      fc.asyncProperty(scene, async ([world, script, timersFireEarlyMs]) => {
        const run = await play(drained(script, 10, 3_000_000), {
          policies: [toPolicy(world)],
          clock: new VirtualClock({ timersFireEarlyMs }),
        });
        expect(worldViolation(traceOf(run), world)).toBeUndefined();
      }),
      seeded(150),
    );
  });

  it("keeps the limits of one busy host over a long backlog", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), endings: anyEnding, pauseMs: 400, maxLength: 80 }),
        early,
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, script, timersFireEarlyMs]) => {
        const run = await play(drained(script, 20, 2_000_000), {
          policies: [{ default: toLimits(spec) }],
          clock: new VirtualClock({ timersFireEarlyMs }),
        });
        expect(specViolation(traceOf(run), spec)).toBeUndefined();
      }),
      seeded(80),
    );
  });

  it("spends no more than the quota in any hour of the calendar", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 3_600_000 }),
      fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 5, maxLength: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([count, wallMs, pauses]) => {
        const ask = { host: "a.example", cost: 1 };
        const script: Script = pauses.map((seconds) => ({
          afterUs: seconds * 1_000_000,
          step: { kind: "acquire", ask },
        }));
        const run = await play(drained(script, 1, 3_600_000_000), {
          policies: [{ default: { quota: { count, per: "hour" } } }],
          clock: new VirtualClock({ wallMs }),
        });
        expect(hourQuotaViolation(traceOf(run), count, wallMs * 1000)).toBeUndefined();
      }),
      seeded(60),
    );
  });

  it("holds 20 in any second against a caller who fires at the worst moments", async () => {
    const spec: LimitSpec = { windows: [{ count: 20, perUs: 1_000_000 }] };
    const tries = (count: number, afterUs: number): Script =>
      Array.from({ length: count }, (_, index) => ({
        afterUs: index === 0 ? afterUs : 0,
        step: { kind: "try", ask: { host: "a.example", cost: 1 } },
      }));
    const script = [
      ...tries(1, 0),
      ...tries(19, 900_000),
      ...tries(20, 100_000),
      ...tries(20, 899_999),
      ...tries(20, 1),
    ];
    const run = await play(script, { policies: [{ default: toLimits(spec) }] });
    expect(specViolation(traceOf(run), spec)).toBeUndefined();
    expect(run.calls).toHaveLength(40);
  });

  it("groups a window above 4,096 and is late by less than a 1,024th, never early", async () => {
    const perUs = 10_240_000;
    const ask = { host: "a.example", cost: 1 };
    const script: Script = Array.from({ length: 5001 }, (_, index) => ({
      afterUs: index === 0 ? 1234 : 0,
      step: { kind: "acquire", ask },
    }));
    const run = await play([...script, { afterUs: 2 * perUs, step: { kind: "look", host: ask.host } }], {
      policies: [{ default: { window: { count: 5000, per: perUs / 1000 } } }],
    });
    const last = run.calls[5000].startedUs ?? Number.NaN;
    expect(run.calls[4999].startedUs).toBe(1234);
    expect(last).toBeGreaterThanOrEqual(1234 + perUs);
    expect(last).toBeLessThan(1234 + perUs + perUs / 1024);
  });

  it("allows the seventh of seven per second in the first burst", async () => {
    const spec: LimitSpec = { rate: { count: 7, perUs: 1_000_000, burst: 7 } };
    const ask = { host: "a.example", cost: 1 };
    const script: Script = Array.from({ length: 8 }, () => ({ afterUs: 0, step: { kind: "try", ask } }));
    const run = await play(script, { policies: [{ default: toLimits(spec) }] });
    expect(run.calls).toHaveLength(7);
  });
});
