import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LimiterEvent, type Limits, limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import type { HoldRules } from "../oracle/incident.js";
import { playModel } from "../oracle/model.js";
import { drained, type Ending, type Step } from "../oracle/script.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { anyEnding, anyScript, anySpec, costBound, spanUs } from "./arbitraries.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

const anyRules = fc.record({
  cooldownUs: fc.array(spanUs(20_000), { minLength: 1, maxLength: 4 }),
  backoff: fc.record({
    kind: fc.constantFrom("none" as const, "linear" as const, "exponential" as const),
    baseUs: spanUs(5000),
    maxUs: spanUs(20_000).map((us) => us + 5_000_000),
  }),
});

describe("L9 one incident", () => {
  it("climbs each ladder once per incident, probes once per hold and resets as the slow incident does", async () => {
    const calm = anyEnding.filter(({ kind }) => kind !== "unused");
    const scene = fc
      .tuple(anySpec({ rate: false }), anyRules)
      .chain(([spec, rules]) =>
        fc.tuple(
          fc.constant(spec),
          fc.constant(rules),
          anyScript({ maxCost: costBound(spec), priorities: true, endings: calm, pauseMs: 8000, maxLength: 50 }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, rules, body]) => {
        const script = drained(body, 20, 9_000_000);
        const holds = { ...rules, patienceUs: Math.max(5_000_000, spec.gapUs ?? 0) };
        const run = await play(script, { policies: [{ default: { ...toLimits(spec), ...holdLimits(rules) } }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec], holds })));
      }),
      seeded(150),
    );
  });

  it("passes the part of the probe on when it is returned unused", async () => {
    const scene = fc
      .tuple(anySpec({ rate: false, gap: false }), anyRules)
      .chain(([spec, rules]) =>
        fc.tuple(
          fc.constant(spec),
          fc.constant(rules),
          anyScript({ maxCost: 1, endings: anyEnding, pauseMs: 4000, maxLength: 50 }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, rules, body]) => {
        const script = drained(body, 20, 9_000_000);
        const holds = { ...rules, patienceUs: 5_000_000 };
        const run = await play(script, { policies: [{ default: { ...toLimits(spec), ...holdLimits(rules) } }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec], holds })));
      }),
      seeded(120),
    );
  });

  it("keeps the hold through a storm of answers, old and new, good and bad, in any order", async () => {
    const ask: Step = { kind: "acquire", ask: { host: "a.example", cost: 1 } };
    const answer = (pick: fc.Arbitrary<number>, kinds: fc.Arbitrary<Ending["kind"]>): fc.Arbitrary<Step> =>
      fc.record({ pick, ending: kinds.map((kind): Ending => ({ kind })) }).map((one) => ({ kind: "release", ...one }));
    // The oldest are the ones under way since before; the newest is the probe, when one is out.
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.constant(ask) },
      { weight: 4, arbitrary: answer(fc.nat({ max: 2 }), fc.constantFrom("rate_limited", "server_error", "timeout")) },
      { weight: 1, arbitrary: answer(fc.nat({ max: 2 }), fc.constantFrom("success", "neutral", "unused")) },
      {
        weight: 3,
        arbitrary: answer(fc.constant(-1), fc.constantFrom("success", "success", "neutral", "unused", "rate_limited")),
      },
    );
    const storm = fc.array(fc.record({ afterUs: spanUs(400), step }), { minLength: 4, maxLength: 50 });
    const ladder = fc.array(spanUs(1000), { minLength: 1, maxLength: 4 });
    const concurrency = fc.option(fc.integer({ min: 4, max: 12 }), { nil: undefined, freq: 2 });
    await fc.assert(
      fc.asyncProperty(
        ladder,
        concurrency,
        fc.integer({ min: 3, max: 10 }),
        storm,
        async (cooldownUs, places, atOnce, body) => {
          const rules = { cooldownUs, backoff: { kind: "linear", baseUs: 300_000, maxUs: 1_000_000 } } as const;
          const spec: LimitSpec = places === undefined ? {} : { concurrency: places };
          const first = Array.from({ length: atOnce }, () => ({ afterUs: 0, step: ask }));
          const script = drained([...first, ...body], 10, 6_000_000);
          const run = await play(script, { policies: [{ default: { ...toLimits(spec), ...holdLimits(rules) } }] });
          const holds = { ...rules, patienceUs: 5_000_000 };
          expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec], holds })));
        },
      ),
      seeded(200),
    );
  });

  it("rises one step for any number of 429s to requests already under way", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 4 }), async (inFlight, incidents) => {
        const clock = new VirtualClock();
        const ladder = [10_000, 20_000, 40_000];
        const limiter = limit({ cooldown: ladder, concurrency: 100 }, { clock });
        const steps: number[] = [];
        limiter.subscribe((event: LimiterEvent) => {
          if (event.type === "cooldown") steps.push(event.step);
        });
        for (let incident = 1; incident <= incidents; incident++) {
          const waits = Array.from({ length: incident === 1 ? inFlight : 1 }, () => limiter.acquire());
          await clock.advance(limiter.check().waitMs);
          const permits = await Promise.all(waits);
          await clock.advance(1);
          for (const permit of permits) permit.release("rate_limited");
          expect(limiter.check().waitMs).toBe(ladder[Math.min(incident, 3) - 1]);
          expect(Math.max(...steps)).toBe(incident);
        }
      }),
      seeded(25),
    );
  });

  it("treats a Retry-After of 0, below 0 or not a number as absent", async () => {
    for (const retryAfterMs of [0, -1, -1e9, Number.NaN]) {
      const limiter = limit({ cooldown: 12_000 }, { clock: new VirtualClock() });
      limiter.tryAcquire()?.release({ kind: "rate_limited", retryAfterMs });
      expect(limiter.check().waitMs).toBe(12_000);
    }
  });

  it("lets one probe go, then the rest at its answer, or after 5 s or one gap when nobody reports", async () => {
    const scene = fc.tuple(
      fc.constantFrom("success", "neutral", "silent", "gone"),
      fc.integer({ min: 1, max: 4000 }),
      fc.constantFrom(0, 2000, 9000),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([answer, afterMs, minDelay]) => {
        const clock = new VirtualClock();
        const limiter = politely({ default: { minDelay, concurrency: 10 } }, { clock });
        (await limiter.acquire("a.example")).release({ kind: "rate_limited", retryAfterMs: 30_000 });
        const times: number[] = [];
        for (let index = 0; index < 4; index++) {
          void limiter.acquire("a.example").then((permit) => {
            times.push(permit.startedAtMs);
            if (index > 0 || answer === "silent") return;
            clock.setTimer(clock.now() + afterMs, () =>
              permit.release(answer === "success" ? "success" : answer === "gone" ? "unused" : undefined),
            );
          });
        }
        await clock.advance(30_000);
        expect(times).toEqual([30_000]);
        await clock.advance(120_000);
        const patience = Math.max(5000, minDelay);
        const second = answer === "silent" ? patience : answer === "gone" ? afterMs : Math.max(afterMs, minDelay);
        expect(times.slice(0, 2)).toEqual([30_000, 30_000 + second]);
        // A returned probe is followed by another, which here nobody reports on.
        const third = answer === "gone" ? second + patience : second + minDelay;
        expect(times[2]).toBe(30_000 + third);
        expect(times).toHaveLength(4);
      }),
      seeded(50),
    );
  });

  it("keeps its step when a success is of a request started before the cooldown began", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ cooldown: [1000, 2000, 4000], concurrency: 10 }, { clock });
    const [first, second] = [await limiter.acquire(), await limiter.acquire()];
    await clock.advance(10);
    first.release("rate_limited");
    await clock.advance(5);
    second.release("success");
    expect(limiter.check().waitMs).toBe(995);
    const probe = limiter.acquire();
    await clock.advance(996);
    (await probe).release("rate_limited");
    expect(limiter.check().waitMs).toBe(2000);
  });
});

function holdLimits({ cooldownUs, backoff }: Omit<HoldRules, "patienceUs">): Limits {
  return {
    cooldown: cooldownUs.map((us) => us / 1000),
    backoff: { kind: backoff.kind, base: backoff.baseUs / 1000, max: backoff.maxUs / 1000 },
  };
}
