import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeadlineError, limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { playModel } from "../oracle/model.js";
import { drained, type Script } from "../oracle/script.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { toUs } from "../oracle/trace.js";
import { anyScript, anySpec, costBound, spanUs } from "./arbitraries.js";
import { type Call, play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

describe("L7 deadline", () => {
  it("refuses at once only what could not have started in time, and lets the rest start or expire to the microsecond", async () => {
    const scene = anySpec({ answer: false }).chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), priorities: true, maxWaits: true, cancels: true, maxLength: 40 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 10, 2_500_000);
        const run = await play(script, { policies: [{ default: toLimits(spec) }] });
        const refused = new Set(
          run.calls.filter((call) => isDeadline(call) && call.leftUs === call.arrivedUs).map((call) => call.id),
        );
        const model = playModel(script, { specs: [spec], refused });
        expect(startTimes(run.calls)).toEqual(startTimes(model));
        for (const call of run.calls) {
          const told = model[call.id];
          if (refused.has(call.id)) expect(couldStartInTime(script, spec, call, refused)).toBe(false);
          else if (isDeadline(call)) expect([call.leftUs, told.fate]).toEqual([told.leftUs, "expired"]);
          else expect(told.fate).not.toBe("expired");
        }
      }),
      seeded(120),
    );
  });

  it("predicts exactly when nobody waits: a wait one microsecond too long is refused with that wait and a reason", async () => {
    const scene = fc.tuple(
      anySpec({ concurrency: false, answer: false }),
      fc.array(spanUs(800), { minLength: 1, maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, pauses]) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        for (const pauseUs of pauses) {
          await clock.advance(pauseUs / 1000);
          const { waitMs } = limiter.explain();
          if (waitMs > 0) {
            const error: unknown = await limiter
              .acquire({ maxWait: (toUs(waitMs) - 1) / 1000 })
              .catch((reason: unknown) => reason);
            const refusal =
              error instanceof DeadlineError ? { waitUs: toUs(error.waitMs), hasReason: error.reason !== "" } : error;
            expect(refusal).toEqual({ waitUs: toUs(waitMs), hasReason: true });
          }
          const dueUs = toUs(clock.now() + waitMs);
          const granted = limiter.acquire({ maxWait: waitMs });
          await clock.runToEnd();
          expect(toUs((await granted).startedAtMs)).toBe(dueUs);
        }
      }),
      seeded(80),
    );
  });

  it("never predicts more than the wait turns out to be, however many are ahead", async () => {
    const scene = anySpec({ concurrency: false, answer: false }).chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        fc.array(fc.tuple(spanUs(300), fc.integer({ min: 1, max: costBound(spec) })), { minLength: 1, maxLength: 25 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, arrivals]) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        const checks: Promise<void>[] = [];
        for (const [afterUs, cost] of arrivals) {
          await clock.advance(afterUs / 1000);
          const toldUs = toUs(clock.now() + limiter.explain().waitMs);
          checks.push(
            limiter.acquire({ cost }).then((permit) => expect(toUs(permit.startedAtMs)).toBeGreaterThanOrEqual(toldUs)),
          );
        }
        await clock.runToEnd();
        await Promise.all(checks);
      }),
      seeded(60),
    );
  });

  it("judges again when a cooldown lands: who cannot make it is refused then, the others wait on", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 2, max: 30_000 }),
      fc.array(fc.integer({ min: 200, max: 60_000 }), { minLength: 1, maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([retryAfterMs, maxWaits]) => {
        const clock = new VirtualClock();
        const limiter = politely({ default: { concurrency: 1 } }, { clock });
        const first = await limiter.acquire("a.example");
        const fates = maxWaits.map((maxWait) =>
          limiter.acquire("a.example", { maxWait }).then(
            (permit) => {
              permit.release("success");
              return { startedAtMs: permit.startedAtMs };
            },
            (error: unknown) => ({ error, leftMs: clock.now() }),
          ),
        );
        await clock.advance(100);
        first.release({ kind: "rate_limited", retryAfterMs });
        await clock.runToEnd();
        for (const [index, fate] of (await Promise.all(fates)).entries()) {
          // Who is due at the very deadline may be served or not: the one in front has to answer first.
          if (maxWaits[index] === 100 + retryAfterMs) continue;
          if (maxWaits[index] < 100 + retryAfterMs) {
            expect(fate).toMatchObject({ leftMs: 100, error: { code: "POLITELY_DEADLINE", waitMs: retryAfterMs } });
          } else expect(fate).toEqual({ startedAtMs: 100 + retryAfterMs });
        }
      }),
      seeded(40),
    );
  });

  it("judges again when limits change", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ minDelay: 1000 }, { clock });
    (await limiter.acquire()).release();
    const failed = limiter.acquire({ maxWait: 5000 }).catch((error: unknown) => error);
    await clock.advance(500);
    limiter.configure({ minDelay: 60_000 });
    await clock.settle();
    expect(await Promise.race([failed, clock.settle().then(() => "still waiting")])).toMatchObject({
      code: "POLITELY_DEADLINE",
      waitMs: 59_500,
    });
    expect(limiter.stats()).toMatchObject({ refused: 1, expired: 0, waiting: 0 });
  });

  it("takes the smallest maxWait of the limits that apply, unless the call says its own", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 1000, maxWait: 500 }, global: { maxWait: "10s" } }, { clock });
    (await limiter.acquire("a.example")).release();
    await expect(limiter.acquire("a.example")).rejects.toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 1000 });
    const patient = limiter.acquire("a.example", { maxWait: 1000 });
    await clock.runToEnd();
    expect((await patient).startedAtMs).toBe(1000);
  });
});

function isDeadline(call: Call): boolean {
  return call.error instanceof DeadlineError;
}

/**
 * Whether the model, with nobody ahead giving up, nobody coming later and every answer coming at once, starts the call by
 * its deadline. Where it does not, nothing that could happen would have started it.
 */
function couldStartInTime(script: Script, spec: LimitSpec, call: Call, refused: ReadonlySet<number>): boolean {
  let id = -1;
  const upTo = script.findIndex(({ step }) => step.kind === "acquire" && ++id === call.id);
  const past = script.slice(0, upTo + 1);
  const others = new Set([...refused].filter((other) => other !== call.id));
  const now = playModel(past, { specs: [spec], refused: others });
  const waiting = new Set(now.filter((one) => one.fate === "waiting").map((one) => one.id));
  const { concurrency: _, ...unheld } = spec;
  const future: Script = [
    { afterUs: 0, step: { kind: "configure", policy: 1 } },
    { afterUs: call.ask.maxWaitUs ?? 0, step: { kind: "look", host: call.ask.host } },
  ];
  const best = playModel([...patient(past, waiting), ...future], { specs: [spec, unheld], refused: others });
  return best[call.id].startedUs !== undefined;
}

/** The script with no deadlines for these requests. */
function patient(script: Script, requests: ReadonlySet<number>): Script {
  let id = 0;
  return script.map(({ afterUs, step }) => {
    if (step.kind !== "acquire" || !requests.has(id++)) return { afterUs, step };
    const { maxWaitUs: _, ...ask } = step.ask;
    return { afterUs, step: { ...step, ask } };
  });
}
