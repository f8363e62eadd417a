import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LimiterEvent, limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { type LimitSpec, type RateSpec, toLimits } from "../oracle/spec.js";
import { type Start, toUs } from "../oracle/trace.js";
import { gapViolation, specViolation } from "../oracle/violations.js";
import { WindowMemory } from "../oracle/windowMemory.js";
import { anyEnding, anyScript, anySpec, costBound, returningEnding, spanUs } from "./arbitraries.js";
import { play, startTimes, traceOf } from "./play.js";
import { ReferenceBucket } from "./referenceBucket.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, type World, worldHosts, worldScopes } from "./worlds.js";

describe("L11 no gift", () => {
  it("changes no start when the same policy is given again, at any time and any number of times", async () => {
    const range = {
      hosts: worldHosts,
      priorities: true,
      tries: true,
      cancels: true,
      endings: anyEnding,
      policies: 1,
    };
    // Of several keys a heavy request waits at the one that stopped it last when it was looked at, and a change looks at everybody.
    const several = anyWorld({ quota: true }).chain((world) =>
      fc.tuple(fc.constant(world), anyScript({ ...range, scopes: worldScopes, maxCost: 1 })),
    );
    const heavy = anySpec({ quota: true }).chain((host) =>
      fc.tuple(fc.constant<World>({ host }), anyScript({ ...range, maxCost: costBound(host) })),
    );
    const scene = fc.oneof(several, heavy);
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        const script = drained(body, 8, 3_000_000);
        const policies = [toPolicy(world)];
        const often = await play(script, { policies });
        const never = await play(withoutConfigure(script), { policies });
        expect(startTimes(often.calls)).toEqual(startTimes(never.calls));
      }),
      seeded(100),
    );
  });

  it("keeps the new limits from the change on, over the starts made before it too", async () => {
    const mixed = anySpec({ rate: false, answer: false });
    const windows = anySpec({ gap: false, rate: false, concurrency: false, answer: false }).filter(
      (spec) => spec.windows !== undefined,
    );
    const threeSpecs = fc.oneof(fc.tuple(mixed, mixed, mixed), fc.tuple(windows, windows, windows));
    const scene = threeSpecs.chain((specs) =>
      fc.tuple(
        fc.constant(specs),
        anyScript({
          maxCost: costBound(...specs),
          cancels: true,
          tries: true,
          looks: true,
          endings: returningEnding,
          policies: 3,
          pauseMs: 800,
          maxLength: 70,
        }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([specs, body]) => {
        const script = drained(body, 10, 2_000_000);
        const eras: Era[] = [{ atUs: 0, first: 0, spec: specs[0] }];
        let started = 0;
        const named = script.filter(({ step }) => step.kind === "configure");
        const run = await play(script, {
          policies: specs.map((spec) => ({ default: toLimits(spec) })),
          onReady: (limiter) =>
            limiter.subscribe((event: LimiterEvent) => {
              if (event.type === "grant") started += 1;
              if (event.type !== "configure") return;
              const { step } = named[eras.length - 1];
              if (step.kind === "configure")
                eras.push({ atUs: toUs(event.atMs), first: started, spec: specs[step.policy] });
            }),
        });
        expect(eras).toHaveLength(named.length + 1);
        expect(changedViolation(traceOf(run), eras)).toBeUndefined();
      }),
      seeded(120),
    );
  });

  it("keeps gap and windows when it begins or ceases to count them from the answer", async () => {
    const scene = anySpec({ rate: false, concurrency: false, answer: false }).chain((spec) =>
      fc.tuple(fc.constant(spec), anyScript({ maxCost: costBound(spec), tries: true, policies: 2, pauseMs: 800 })),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const run = await play(drained(body, 6, 2_000_000), {
          policies: [{ default: toLimits(spec) }, { default: toLimits({ ...spec, fromAnswer: true }) }],
        });
        expect(specViolation(traceOf(run), spec)).toBeUndefined();
      }),
      seeded(120),
    );
  });

  it("keeps the debt of a bucket in units through any changes, and adds what the bucket grew by", async () => {
    const rate = fc.record({
      count: fc.integer({ min: 1, max: 12 }),
      perUs: spanUs(3000),
      burst: fc.integer({ min: 1, max: 6 }),
    });
    const moves = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ afterUs: spanUs(1200), rate: fc.constant(undefined) }) },
        { weight: 1, arbitrary: fc.record({ afterUs: spanUs(1200), rate }) },
      ),
      { minLength: 2, maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(rate, moves, async (first: RateSpec, steps) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits({ rate: first }), { clock });
        const bucket = new ReferenceBucket(first);
        let current = first;
        // Each change may round the debt up by less than one unit-microsecond of the new bucket, in lowest terms.
        let slackUnits = 0;
        for (const { afterUs, rate: changed } of steps) {
          await clock.advance(afterUs / 1000);
          const nowUs = toUs(clock.now());
          if (changed !== undefined) {
            limiter.configure(toLimits({ rate: changed }));
            bucket.change(changed, nowUs);
            slackUnits += greatestDivisor(changed.count, changed.perUs) / changed.perUs;
            current = changed;
            continue;
          }
          const earliestUs = bucket.readyAt(nowUs);
          const waitUs = toUs(limiter.explain().waitMs);
          expect(nowUs + waitUs).toBeGreaterThanOrEqual(earliestUs);
          expect(nowUs + waitUs).toBeLessThanOrEqual(
            earliestUs + Math.ceil((slackUnits * current.perUs) / current.count),
          );
          if (limiter.tryAcquire() !== undefined) bucket.take(nowUs);
        }
      }),
      seeded(150),
    );
  });

  it("lets nothing be spent at once that could not have been before, however large the new burst", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ rate: "1/s", burst: 3 }, { clock });
    expect([1, 2].map(() => limiter.tryAcquire() !== undefined)).toEqual([true, true]);
    limiter.configure({ rate: "1/s", burst: 100 });
    expect([1, 2].map(() => limiter.tryAcquire() !== undefined)).toEqual([true, false]);
    limiter.configure({ rate: "1/s", burst: 1 });
    limiter.configure({ rate: "1/s", burst: 3 });
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("applies to everyone queued at once, in both directions", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 0, max: 9000 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([oldMs, newMs, changeMs]) => {
        const clock = new VirtualClock();
        const limiter = politely({ default: { minDelay: oldMs } }, { clock });
        const times: number[] = [];
        for (let index = 0; index < 6; index++)
          void limiter.acquire("a.example").then((permit) => times.push(permit.startedAtMs));
        await clock.advance(changeMs);
        const before = [...times];
        limiter.configure({ default: { minDelay: newMs } });
        await clock.runToEnd();
        for (let index = before.length; index < 6; index++) {
          expect(times[index]).toBe(Math.max(changeMs, times[index - 1] + newMs));
        }
      }),
      seeded(60),
    );
  });

  it("leaves everything as it was when the new policy is wrong", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 1000 } }, { clock });
    (await limiter.acquire("a.example")).release();
    const waiting = limiter.acquire("a.example");
    expect(() => limiter.configure({ default: { minDelay: -1 } })).toThrow();
    await clock.runToEnd();
    expect((await waiting).startedAtMs).toBe(1000);
  });

  it("counts what is in flight under a place limit that came later or became smaller", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ concurrency: 4 }, { clock });
    const permits = await Promise.all([1, 2, 3, 4].map(() => limiter.acquire()));
    limiter.configure({ concurrency: 2 });
    for (const [index, permit] of permits.entries()) {
      expect([index, limiter.tryAcquire()]).toEqual([index, undefined]);
      permit.release();
      if (index === 2) break;
    }
    expect(limiter.tryAcquire()).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
    const free = limit({}, { clock });
    const open = await Promise.all([1, 2, 3].map(() => free.acquire()));
    free.configure({ concurrency: 3 });
    expect(free.tryAcquire()).toBeUndefined();
    open[0].release();
    expect(free.tryAcquire()).toBeDefined();
  });
});

interface Era {
  readonly atUs: number;
  /** How many starts were made before it. */
  readonly first: number;
  readonly spec: LimitSpec;
}

/**
 * Judges every start by the limits in force when it was made, looking back over the starts made under earlier limits too.
 *
 * A gap looks at the start before, whenever that was; a window at those that it knows of.
 */
function changedViolation(trace: readonly Start[], eras: readonly Era[]): string | undefined {
  const memory = new WindowMemory(eras[0].spec.windows ?? []);
  for (const [index, { atUs, first, spec }] of eras.entries()) {
    const next = eras[index + 1]?.first ?? trace.length;
    if (index > 0) memory.change(spec.windows ?? [], atUs);
    for (const start of trace.slice(first, next)) {
      if (start.unused !== true && memory.mustRefuse(start.cost, start.atUs))
        return `under policy ${index} from ${atUs} µs: a window had no room for the start at ${start.atUs} µs`;
      memory.start(start.atUs, start.cost, start.unused);
    }
    const found = gapViolation(trace.slice(0, next), spec.gapUs ?? 0, index === 0 ? 0 : atUs + 1);
    if (found !== undefined) return `under policy ${index} from ${atUs} µs: ${found}`;
  }
  return eras.length === 1 ? specViolation(trace, eras[0].spec) : undefined;
}

function withoutConfigure(script: Script): Script {
  return script.map(({ afterUs, step }) => ({
    afterUs,
    step: step.kind === "configure" ? { kind: "look", host: "a.example" } : step,
  }));
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
