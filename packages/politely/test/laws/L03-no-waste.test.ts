import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limit, type Permit } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { playModel } from "../oracle/model.js";
import { drained } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { toUs } from "../oracle/trace.js";
import { anyScript, anySpec, costBound, spanUs } from "./arbitraries.js";
import { LateClock } from "./clocks.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

const look = { kind: "look", host: "a.example" } as const;

describe("L3 no waste", () => {
  it("starts each waiter at the very microsecond the slow model finds, for any mix of limits and costs", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), looks: true, maxLength: 35 })),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 12, 2_500_000);
        const run = await play(script, { policies: [{ default: toLimits(spec) }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec] })));
      }),
      seeded(120),
    );
  });

  it("gives a place back exactly at maxHold when nobody releases it", async () => {
    const scene = fc
      .tuple(anySpec(), fc.integer({ min: 1, max: 4 }), spanUs(2000))
      .map(([spec, concurrency, maxHoldUs]) => ({ ...spec, concurrency, maxHoldUs }))
      .chain((spec) => fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), maxLength: 25 })));
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, script]) => {
        const silent = script.map(({ afterUs, step }) => ({ afterUs, step: step.kind === "release" ? look : step }));
        const whole = [...silent, { afterUs: 30_000_000, step: look }];
        const run = await play(whole, { policies: [{ default: toLimits(spec) }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(whole, { specs: [spec] })));
      }),
      seeded(60),
    );
  });

  it("counts a permit as ended at maxHold also when its release comes later", async () => {
    const scene = fc
      .tuple(anySpec(), fc.integer({ min: 1, max: 4 }), spanUs(2000))
      .map(([spec, concurrency, maxHoldUs]) => ({ ...spec, concurrency, maxHoldUs }))
      .chain((spec) => fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), maxLength: 25 })));
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, script]) => {
        const whole = [...script, { afterUs: 30_000_000, step: look }];
        const run = await play(whole, { policies: [{ default: toLimits(spec) }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(whole, { specs: [spec] })));
      }),
      seeded(60),
    );
  });

  it("spends a quota to the last unit and goes on the moment the next hour begins", async () => {
    const scene = anySpec({ quota: true, concurrency: false, answer: false }).chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), maxLength: 20, pauseMs: 600_000 }),
        fc.integer({ min: 0, max: 7_200_000 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body, wallMs]) => {
        const script = drained(body, 4, 3_600_000_000);
        const clock = new VirtualClock({ wallMs });
        const run = await play(script, { policies: [{ default: toLimits(spec) }], clock });
        const model = playModel(script, { specs: [spec], wallUs: wallMs * 1000 });
        // A wall time has no exact microseconds as a number of milliseconds; it may come out one late, never early.
        const lateUs = run.calls.map((call, id) => (call.startedUs ?? 0) - (model[id].startedUs ?? 0));
        expect(lateUs.filter((us) => us < 0 || us > 3)).toEqual([]);
      }),
      seeded(60),
    );
  });

  it("reaches the whole rate over 10,000 starts, and nothing decays", async () => {
    for (const [count, burst] of [
      [50, 1],
      [1, 1],
      [7, 3],
    ]) {
      const clock = new VirtualClock();
      const limiter = limit({ rate: { count, per: 1000 }, burst }, { clock });
      const times: number[] = [];
      for (let index = 0; index < 10_000; index++) {
        void limiter.acquire().then((permit) => {
          times.push(toUs(permit.startedAtMs));
          permit.release();
        });
      }
      await clock.runToEnd();
      expect(times).toHaveLength(10_000);
      const expected = times.map((_, index) => Math.ceil((Math.max(0, index + 1 - burst) * 1_000_000) / count));
      expect(times).toEqual(expected);
    }
  });

  it("reaches 99 % of 50 a second with burst 1 on timers up to 0.2 ms late", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 5, maxLength: 50 }), async (lateUs) => {
        const clock = new VirtualClock();
        let fired = 0;
        const late = new LateClock(clock, () => lateUs[fired++ % lateUs.length] / 1000);
        const limiter = limit({ rate: "50/s" }, { clock: late });
        const permits: Promise<Permit>[] = Array.from({ length: 500 }, () => limiter.acquire());
        await clock.runToEnd();
        const last = await permits[499];
        expect(last.startedAtMs).toBeLessThanOrEqual((499 * 20) / 0.99);
      }),
      seeded(10),
    );
  });

  it("is at its full rate again after any idle time and after any burst", async () => {
    const scene = anySpec({ gap: false, concurrency: false, answer: false }).chain((spec) =>
      fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), maxLength: 25 })),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, script]) => {
        const run = await play(drained(script, 1, 600_000_000), { policies: [{ default: toLimits(spec) }] });
        // Ten minutes later nothing is owed: as many as the smallest limit holds start at one instant.
        const room = Math.min(spec.rate?.burst ?? 50, ...(spec.windows ?? []).map(({ count }) => count));
        const granted = Array.from({ length: room }, () => run.limiter.tryAcquire("a.example"));
        expect(granted.every((permit) => permit !== undefined)).toBe(true);
      }),
      seeded(60),
    );
  });
});
