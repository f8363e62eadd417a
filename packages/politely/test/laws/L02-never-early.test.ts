import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limit, type Permit } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { toUs } from "../oracle/trace.js";
import { specViolation } from "../oracle/violations.js";
import { anySpec, spanUs } from "./arbitraries.js";
import { play, startTimes, traceOf } from "./play.js";
import { seeded } from "./seeded.js";

const dayMs = 86_400_000;

describe("L2 never early", () => {
  it("starts nobody before the time it was told, with early timers and stalls of 50 ms and 5 s", async () => {
    const pause = fc.oneof(fc.constant(0), spanUs(30), spanUs(2000));
    const moves = fc.array(fc.record({ afterUs: pause, stallUs: fc.constantFrom(0, 0, 0, 50_000, 5_000_000) }), {
      minLength: 1,
      maxLength: 25,
    });
    const scene = fc.tuple(anySpec({ concurrency: false, answer: false }), moves, fc.constantFrom(0, 0.25, 0.8, 1));
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, steps, timersFireEarlyMs]) => {
        const clock = new VirtualClock({ timersFireEarlyMs });
        const limiter = limit(toLimits(spec), { clock });
        const told: number[] = [];
        const started: Promise<Permit>[] = [];
        for (const { afterUs, stallUs } of steps) {
          await clock.advance(afterUs / 1000);
          told.push(toUs(clock.now() + limiter.explain().waitMs));
          started.push(limiter.acquire());
          if (stallUs > 0) clock.stall(stallUs / 1000);
        }
        await clock.runToEnd();
        const startUs = (await Promise.all(started)).map((permit) => toUs(permit.startedAtMs));
        for (const [index, atUs] of startUs.entries()) expect(atUs).toBeGreaterThanOrEqual(told[index]);
        expect(
          specViolation(
            startUs.map((atUs) => ({ atUs, cost: 1, releasedUs: atUs })),
            spec,
          ),
        ).toBeUndefined();
      }),
      seeded(150),
    );
  });

  it("starts a lone request exactly when told, on a clock that is exact", async () => {
    const scene = fc.tuple(
      anySpec({ concurrency: false, answer: false }),
      fc.array(spanUs(1000), { minLength: 1, maxLength: 15 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, pauses]) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        for (const pauseUs of pauses) {
          await clock.advance(pauseUs / 1000);
          const decision = limiter.check();
          const { waitMs } = limiter.explain();
          const toldUs = toUs(clock.now() + waitMs);
          // For timers of whole milliseconds, which cut fractions off.
          expect(decision.waitMs).toBe(Math.ceil(waitMs));
          expect(decision.proceed).toBe(decision.waitMs === 0);
          const waiting = limiter.acquire();
          await clock.runToEnd();
          expect(toUs((await waiting).startedAtMs)).toBe(toldUs);
        }
      }),
      seeded(80),
    );
  });

  it("keeps waits beyond 2^31 ms to the microsecond, with timers a millisecond early too", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 25, max: 400 }),
      fc.integer({ min: 0, max: 999 }),
      fc.constantFrom(0, 1),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([days, oddMs, timersFireEarlyMs, isWindow]) => {
        const waitMs = days * dayMs + oddMs;
        const clock = new VirtualClock({ timersFireEarlyMs });
        const limiter = limit(isWindow ? { window: { count: 1, per: waitMs } } : { minDelay: waitMs }, { clock });
        (await limiter.acquire()).release();
        const waiting = limiter.acquire();
        let isStarted = false;
        void waiting.then(() => {
          isStarted = true;
        });
        await clock.advance(2 ** 31 - 1);
        await clock.advance(1000);
        expect(isStarted).toBe(false);
        await clock.runToEnd();
        expect(toUs((await waiting).startedAtMs)).toBe(waitMs * 1000);
      }),
      seeded(25),
    );
  });

  it("does not bunch up after a stall of 5 s: the gap, the bucket and the window go on as before", async () => {
    const specs: LimitSpec[] = [
      { gapUs: 100_000 },
      { rate: { count: 10, perUs: 1_000_000, burst: 1 } },
      { windows: [{ count: 1, perUs: 100_000 }] },
    ];
    const ask = { host: "a.example", cost: 1 };
    const script: Script = [
      ...Array.from({ length: 30 }, () => ({ afterUs: 0, step: { kind: "acquire", ask } as const })),
      { afterUs: 350_000, step: { kind: "stall", us: 5_000_000 } },
    ];
    for (const spec of specs) {
      const run = await play(drained(script, 1, 10_000_000), { policies: [{ default: toLimits(spec) }] });
      expect(specViolation(traceOf(run), spec)).toBeUndefined();
      const times = startTimes(run.calls);
      expect(times.slice(0, 4)).toEqual([0, 100_000, 200_000, 300_000]);
      expect(times[4]).toBeGreaterThanOrEqual(5_350_000);
      for (let index = 5; index < times.length; index++)
        expect((times[index] ?? 0) - (times[index - 1] ?? 0)).toBe(100_000);
    }
  });
});
