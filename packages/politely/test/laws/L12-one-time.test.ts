import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limit } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { toUs } from "../oracle/trace.js";
import { specViolation } from "../oracle/violations.js";
import { anyEnding, anyScript, anySpec, spanUs } from "./arbitraries.js";
import { SteppingClock } from "./clocks.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes } from "./worlds.js";

const hourMs = 3_600_000;

describe("L12 one time", () => {
  it("changes no start when the wall clock is set an hour forwards or back, again and again", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({
          hosts: worldHosts,
          scopes: worldScopes,
          maxCost: worldCost(world),
          tries: true,
          cancels: true,
          walls: true,
          endings: anyEnding,
        }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        const script = drained(body, 8, 3_000_000);
        const policies = [toPolicy(world)];
        const shaken = await play(script, { policies });
        const steady = await play(withoutWall(script), { policies });
        expect(startTimes(shaken.calls)).toEqual(startTimes(steady.calls));
      }),
      seeded(100),
    );
  });

  it("treats a clock that steps back as standing still: nothing early, nothing out of order, nobody left behind", async () => {
    const moves = fc.array(
      fc.record({
        afterUs: fc.oneof(fc.constant(0), spanUs(800)),
        backMs: fc.constantFrom(0, 0, 0, 1, 40, 5000, hourMs),
      }),
      { minLength: 1, maxLength: 25 },
    );
    await fc.assert(
      fc.asyncProperty(anySpec({ concurrency: false, answer: false }), moves, async (spec, steps) => {
        const clock = new VirtualClock();
        const stepping = new SteppingClock(clock);
        const limiter = limit(toLimits(spec), { clock: stepping });
        const times: number[] = [];
        for (const { afterUs, backMs } of steps) {
          await clock.advance(afterUs / 1000);
          if (backMs > 0) stepping.stepBack(backMs);
          void limiter.acquire().then((permit) => {
            times.push(toUs(permit.startedAtMs));
            permit.release();
          });
        }
        await clock.runToEnd();
        expect(times).toHaveLength(steps.length);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(
          specViolation(
            times.map((atUs) => ({ atUs, cost: 1, releasedUs: atUs })),
            spec,
          ),
        ).toBeUndefined();
      }),
      seeded(100),
    );
  });

  it("never enters an hour of the quota twice, however the wall clock is set", async () => {
    const moves = fc.array(
      fc.record({
        afterMs: fc.integer({ min: 0, max: hourMs }),
        shiftMs: fc.constantFrom(0, 0, 0, hourMs, -hourMs, -5 * hourMs, 1000),
      }),
      { minLength: 3, maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), moves, async (count, steps) => {
        const clock = new VirtualClock({ wallMs: 100 * hourMs });
        const limiter = limit({ quota: { count, per: "hour" } }, { clock });
        let hour = 0;
        let used = 0;
        for (const { afterMs, shiftMs } of steps) {
          await clock.advance(afterMs);
          clock.shiftWall(shiftMs);
          const shown = Math.floor(clock.wall() / hourMs);
          if (shown > hour) [hour, used] = [shown, 0];
          const permit = limiter.tryAcquire();
          expect(permit !== undefined).toBe(used < count);
          if (permit !== undefined) used += 1;
          permit?.release();
        }
      }),
      seeded(80),
    );
  });

  it("wakes for a quota by the wall clock as it is then, neither early after a step back nor never", async () => {
    for (const shiftMs of [-hourMs, 0, hourMs]) {
      const clock = new VirtualClock({ wallMs: 100 * hourMs + 600_000 });
      const limiter = limit({ quota: { count: 1, per: "hour" } }, { clock });
      (await limiter.acquire()).release();
      const waiting = limiter.acquire();
      await clock.advance(60_000);
      clock.shiftWall(shiftMs);
      await clock.runToEnd();
      const permit = await waiting;
      const wallAtStart = clock.wall() - (clock.now() - permit.startedAtMs);
      expect(Math.floor(wallAtStart / hourMs)).toBeGreaterThanOrEqual(101);
      // At the latest one look at the old time, and one more hour for the one that was put back.
      expect(permit.startedAtMs).toBeLessThanOrEqual(50 * 60_000 + Math.max(0, -shiftMs));
    }
  });

  it("stamps starts by the monotonic clock and dates by the wall clock", async () => {
    const clock = new VirtualClock({ nowMs: 5000, wallMs: Date.UTC(2030, 0, 1) });
    const limiter = limit({ minDelay: 100 }, { clock });
    await clock.advance(1);
    const permit = await limiter.acquire();
    expect(permit.startedAtMs).toBe(5001);
    expect(limiter.stats().lastRequestAt?.toISOString()).toBe("2030-01-01T00:00:00.001Z");
  });
});

function withoutWall(script: Script): Script {
  return script.map(({ afterUs, step }) => ({
    afterUs,
    step: step.kind === "wall" ? { kind: "look", host: "a.example" } : step,
  }));
}
