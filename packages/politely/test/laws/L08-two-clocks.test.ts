import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limit, type PolicyInput, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { defaultHoldRules, type HostLogEntry, incidentAfter } from "../oracle/incident.js";
import { playModel } from "../oracle/model.js";
import { drained } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { type Hold, startsOf } from "../oracle/trace.js";
import { holdViolation, specViolation } from "../oracle/violations.js";
import { anyEnding, anyScript, anySpec, costBound } from "./arbitraries.js";
import { play, type Run, startedCalls, startTimes, startUsOf, traceOf } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes, worldViolation } from "./worlds.js";

describe("L8 two clocks", () => {
  it("starts nothing at a host inside any hold, while the other hosts go on, and pacing stays exact", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({
          hosts: worldHosts,
          scopes: worldScopes,
          maxCost: worldCost(world),
          tries: true,
          cancels: true,
          stalls: true,
          endings: anyEnding,
          maxLength: 60,
        }),
        fc.constantFrom(0, 1),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body, timersFireEarlyMs]) => {
        const run = await play(drained(body, 10, 7_000_000), {
          policies: [toPolicy(world)],
          clock: new VirtualClock({ timersFireEarlyMs }),
        });
        for (const host of worldHosts) {
          const holds = holdsOf(run, host);
          expect(holdViolation(startsOf(traceOf(run), host), holds)).toBeUndefined();
        }
        expect(worldViolation(traceOf(run), world)).toBeUndefined();
      }),
      seeded(120),
    );
  });

  it("starts each waiter at the very microsecond that pacing and cooldown together allow", async () => {
    const calm = anyEnding.filter(({ kind }) => kind !== "unused");
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), cancels: true, priorities: true, endings: calm, maxLength: 45 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 20, 7_000_000);
        const holds = { ...defaultHoldRules, patienceUs: Math.max(5_000_000, spec.gapUs ?? 0) };
        const run = await play(script, { policies: [{ default: toLimits(spec) }] });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec], holds })));
      }),
      seeded(120),
    );
  });

  it("holds no place while it waits for a cooldown, so that other hosts use the shared places", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {}, global: { concurrency: 1 } }, { clock });
    (await limiter.acquire("a.example")).release({ kind: "rate_limited", retryAfterMs: 10_000 });
    const held = limiter.acquire("a.example");
    for (let index = 0; index < 5; index++) {
      const other = await limiter.acquire("b.example");
      expect(other.waitedMs).toBe(0);
      await clock.advance(100);
      other.release("success");
    }
    await clock.runToEnd();
    expect((await held).startedAtMs).toBe(10_000);
  });

  it("only ever lengthens a hold, whatever comes later: shorter answers, successes, other limits, a reset of pacing", async () => {
    const later = fc.array(
      fc.constantFrom("short", "error", "success", "neutral", "configure", "reset", "resume", "record"),
      { minLength: 1, maxLength: 10 },
    );
    await fc.assert(
      fc.asyncProperty(later, async (events) => {
        const clock = new VirtualClock();
        const policy: PolicyInput = { default: { concurrency: 20 } };
        const limiter = politely(policy, { clock });
        const permits = await Promise.all(Array.from({ length: 11 }, () => limiter.acquire("a.example")));
        await clock.advance(10);
        permits[0].release({ kind: "rate_limited", retryAfterMs: 90_000 });
        let dueMs = 90_010;
        for (const [index, event] of events.entries()) {
          await clock.advance(1000);
          const permit = permits[index + 1];
          if (event === "short") permit.release({ kind: "rate_limited", retryAfterMs: 5 });
          else if (event === "error") permit.release("server_error");
          else if (event === "success") permit.release("success");
          else if (event === "neutral") permit.release();
          else if (event === "configure") limiter.configure(policy);
          else if (event === "reset") limiter.reset("a.example");
          else if (event === "resume") limiter.resume();
          else {
            limiter.record("a.example", { kind: "rate_limited", retryAfterMs: 95_000 });
            dueMs = Math.max(dueMs, clock.now() + 95_000);
          }
          expect(limiter.check("a.example").waitMs).toBeCloseTo(dueMs - clock.now(), 6);
        }
        const next = limiter.acquire("a.example");
        await clock.runToEnd();
        expect((await next).startedAtMs).toBe(dueMs);
      }),
      seeded(60),
    );
  });

  it("lengthens by jitter and never shortens", async () => {
    const scene = fc.tuple(
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 1, max: 4 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([random, jitter, failures]) => {
        const clock = new VirtualClock();
        const backoff = { kind: "exponential", base: 1000, max: 6000, jitter } as const;
        const limiter = limit({ backoff }, { clock, random: () => random });
        for (let step = 1; step <= failures; step++) {
          const permit = limiter.acquire();
          await clock.runToEnd();
          (await permit).release("server_error");
          const steadyMs = Math.min(6000, 1000 * 2 ** (step - 1));
          const { waitMs } = limiter.explain();
          expect(waitMs).toBeGreaterThanOrEqual(steadyMs - 1e-6);
          expect(waitMs).toBeLessThanOrEqual(steadyMs * (1 + jitter) + 0.002);
        }
      }),
      seeded(40),
    );
  });

  it("fails clearly when the cooldown is longer than maxWait, and never goes early instead", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ maxWait: "10s" }, { clock });
    (await limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 60_000 });
    await expect(limiter.acquire()).rejects.toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 60_000 });
    await clock.advance(50_000);
    const waiting = limiter.acquire();
    await clock.runToEnd();
    expect((await waiting).startedAtMs).toBe(60_000);
  });

  it("goes on pacing as before the cooldown once it is over: no burst and no forgiven debt", async () => {
    const spec = { gapUs: 500_000, windows: [{ count: 2, perUs: 5_000_000 }] };
    const clock = new VirtualClock();
    const limiter = politely({ default: toLimits(spec) }, { clock });
    const times: number[] = [];
    const waits = Array.from({ length: 8 }, (_, index) =>
      limiter.acquire("a.example").then((permit) => {
        times.push(permit.startedAtMs * 1000);
        permit.release(index === 1 ? { kind: "rate_limited", retryAfterMs: 2000 } : "success");
      }),
    );
    await clock.runToEnd();
    await Promise.all(waits);
    expect(
      specViolation(
        times.map((atUs) => ({ atUs: Math.round(atUs), cost: 1 })),
        spec,
      ),
    ).toBeUndefined();
    expect(times.slice(0, 4)).toEqual([0, 500_000, 5_000_000, 5_500_000]);
  });

  it("holds for a pause as long as it was said, or until it is resumed, and keeps a cooldown that is longer", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    (await limiter.acquire("a.example")).release({ kind: "rate_limited", retryAfterMs: 3000 });
    limiter.pause("a.example", 1000);
    limiter.pause("b.example");
    const [a, b] = [limiter.acquire("a.example"), limiter.acquire("b.example")];
    await clock.advance(2000);
    limiter.resume("a.example");
    await clock.advance(5000);
    expect((await a).startedAtMs).toBe(3000);
    limiter.resume("b.example");
    await clock.settle();
    expect((await b).startedAtMs).toBe(7000);
  });
});

/** Every hold of a host, worked out from all its starts and answers. */
function holdsOf(run: Run, host: string): Hold[] {
  const log: HostLogEntry[] = startedCalls(run)
    .filter((call) => call.ask.host === host)
    .map((call) => ({ what: "start", id: call.id, atUs: startUsOf(call) }));
  for (const { call, ending, atUs } of run.answers) {
    if (call.ask.host === host) log.push({ what: "end", id: call.id, startedUs: startUsOf(call), atUs, ending });
  }
  const ordered = log
    .map((entry, index) => ({ entry, index }))
    .sort((a, b) => a.entry.atUs - b.entry.atUs || a.index - b.index);
  const entries = ordered.map(({ entry }) => entry);
  return entries.flatMap((entry, index) => {
    if (entry.what === "start") return [];
    const { untilUs } = incidentAfter(entries.slice(0, index + 1), defaultHoldRules);
    return untilUs > entry.atUs ? [{ fromUs: entry.atUs, untilUs }] : [];
  });
}
