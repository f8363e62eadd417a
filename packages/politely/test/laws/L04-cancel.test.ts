import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limit } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { fitsAt } from "../oracle/fitsAt.js";
import { playModel } from "../oracle/model.js";
import { drained, type Script } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { type Start, toUs } from "../oracle/trace.js";
import { specViolation } from "../oracle/violations.js";
import { anyScript, anySpec, costBound, returningEnding, spanUs } from "./arbitraries.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

describe("L4 cancel", () => {
  it("starts the survivors of equal cost exactly as if the cancelled had never come", async () => {
    const scene = fc.tuple(anySpec(), anyScript({ maxCost: 1, priorities: true, cancels: true, maxLength: 60 }));
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 10, 2_500_000);
        const policies = [{ default: toLimits(spec) }];
        const withThem = await play(script, { policies });
        const gone = new Set(withThem.calls.filter((call) => call.fate === "rejected").map((call) => call.id));
        const without = await play(withoutCalls(script, gone), { policies });
        const survivors = withThem.calls.filter((call) => !gone.has(call.id));
        expect(startTimes(survivors)).toEqual(startTimes(without.calls));
      }),
      seeded(100),
    );
  });

  it("goes on from a cancellation as if that waiter had not been in the queue, for any cost and priority", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), priorities: true, cancels: true })),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 10, 2_500_000);
        const run = await play(script, { policies: [{ default: toLimits(spec) }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec] })));
      }),
      seeded(120),
    );
  });

  it("gives all of an unused start back to windows, quotas and places, at once", async () => {
    const scene = anySpec({ gap: false, rate: false, quota: true }).chain((spec) =>
      fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), cancels: true, endings: returningEnding })),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 10, 2_500_000);
        const run = await play(script, {
          policies: [{ default: toLimits(spec) }],
          clock: new VirtualClock({ wallMs: 0 }),
        });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec] })));
      }),
      seeded(80),
    );
  });

  it("gives gap and bucket back no more than the remaining starts allow, and never takes for it", async () => {
    const moves = fc.array(
      fc.record({
        afterUs: fc.oneof(fc.constant(0), spanUs(900)),
        act: fc.constantFrom("try", "try", "try", "return", "release"),
        pick: fc.nat(5),
      }),
      { minLength: 3, maxLength: 50 },
    );
    await fc.assert(
      fc.asyncProperty(anySpec({ concurrency: false, answer: false }), moves, async (spec, steps) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        const starts: (Start & { release: (outcome?: "unused") => void })[] = [];
        for (const { afterUs, act, pick } of steps) {
          await clock.advance(afterUs / 1000);
          const atUs = toUs(clock.now());
          const open = starts.filter((start) => start.releasedUs === undefined);
          const chosen = open[pick % Math.max(1, open.length)];
          if (act !== "try" && chosen !== undefined) {
            chosen.release(act === "return" ? "unused" : undefined);
            starts[starts.indexOf(chosen)] = { ...chosen, releasedUs: atUs, unused: act === "return" };
            continue;
          }
          const generous = fitsAt({ spec, starts, cost: 1, atUs });
          const strict = fitsAt({ spec, starts: starts.map((start) => ({ ...start, unused: false })), cost: 1, atUs });
          const permit = limiter.tryAcquire();
          if (strict) expect(permit).toBeDefined();
          if (!generous) expect(permit).toBeUndefined();
          if (permit !== undefined) starts.push({ atUs, cost: 1, release: (outcome) => permit.release(outcome) });
        }
        expect(specViolation(starts, spec)).toBeUndefined();
      }),
      seeded(200),
    );
  });

  it("gives the last start back whole, gap and bucket included, when none came after it", async () => {
    const scene = fc.tuple(anySpec({ concurrency: false }), fc.array(spanUs(1500), { maxLength: 8 }), spanUs(700));
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, pauses, heldUs]) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        for (const pauseUs of pauses) {
          await clock.advance(pauseUs / 1000);
          limiter.tryAcquire()?.release("success");
        }
        const waiting = limiter.acquire();
        await clock.runToEnd();
        const permit = await waiting;
        permit.release("unused");
        // Nothing owed by the last start: another may start at this very instant, as it did.
        expect(limiter.check()).toMatchObject({ proceed: true, waitMs: 0 });
        const again = limiter.tryAcquire();
        await clock.advance(heldUs / 1000);
        again?.release("unused");
        expect(limiter.check().proceed).toBe(true);
      }),
      seeded(80),
    );
  });

  it("lets the 51st start at the next slot when the 50 in front are cancelled, in any order", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(
          Array.from({ length: 50 }, (_, index) => index),
          { minLength: 50 },
        ),
        async (order) => {
          const clock = new VirtualClock();
          const limiter = limit({ minDelay: 1000 }, { clock });
          (await limiter.acquire()).release();
          const aborts = order.map(() => new AbortController());
          const cancelled = aborts.map(({ signal }) => limiter.acquire({ signal }).catch((error: unknown) => error));
          const last = limiter.acquire();
          await clock.advance(500);
          for (const index of order) aborts[index].abort(new Error(`no longer wanted: ${index}`));
          await clock.runToEnd();
          expect((await last).startedAtMs).toBe(1000);
          for (const [index, error] of (await Promise.all(cancelled)).entries())
            expect(error).toBe(aborts[index].signal.reason);
        },
      ),
      seeded(10),
    );
  });

  it("counts each of many cancellations on one shared signal, and none twice", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ minDelay: 1000 }, { clock });
    const abort = new AbortController();
    (await limiter.acquire()).release();
    const waits = Array.from({ length: 100 }, () => limiter.acquire({ signal: abort.signal }).catch(() => "gone"));
    abort.abort();
    expect(await Promise.all(waits)).toEqual(waits.map(() => "gone"));
    expect(limiter.stats()).toMatchObject({ cancelled: 100, waiting: 0, granted: 1 });
    expect(limiter.cancelWaiting()).toBe(0);
  });
});

/** The script without the requests of these numbers and without cancellations; every other step stays where it was in time. */
function withoutCalls(script: Script, gone: ReadonlySet<number>): Script {
  let id = 0;
  return script.map(({ afterUs, step }) => {
    const stays = step.kind === "acquire" ? !gone.has(id++) : step.kind !== "cancel";
    return { afterUs, step: stays ? step : { kind: "look", host: "a.example" } };
  });
}
