import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limits, type Outcome, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { anyEnding, anyScript, anySpec, calmEnding, costBound } from "../../laws/arbitraries.js";
import { play, startTimes, traceOf } from "../../laws/play.js";
import { seeded } from "../../laws/seeded.js";
import { drained } from "../../oracle/script.js";
import { toLimits } from "../../oracle/spec.js";
import { startsOf, toUs } from "../../oracle/trace.js";
import { gapViolation, specViolation } from "../../oracle/violations.js";
import { drive, type Traffic } from "./drive.js";
import type { Reply, Site } from "./sites.js";

const host = "a.example";
const anyBad = fc.constantFrom<Outcome>("rate_limited", "server_error", "timeout", { status: 503 }, { status: 429 });

describe("with adaptive", () => {
  it("the limits of the policy hold as they do without, whatever is answered", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({
          maxCost: costBound(spec),
          tries: true,
          cancels: true,
          stalls: true,
          endings: anyEnding,
          maxLength: 50,
        }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const limits = { ...toLimits(spec), adaptive: true };
        const run = await play(drained(body, 8, 20_000_000), { policies: [{ default: limits }] });
        expect(specViolation(startsOf(traceOf(run), host), spec)).toBeUndefined();
      }),
      seeded(120),
    );
  });

  it("nothing starts later than without as long as nothing is wrong", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), tries: true, cancels: true, endings: calmEnding, maxLength: 15 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const script = drained(body, 8, 20_000_000);
        const plain = await play(script, { policies: [{ default: toLimits(spec) }] });
        const adaptive = await play(script, { policies: [{ default: { ...toLimits(spec), adaptive: true } }] });
        expect(startTimes(adaptive.calls)).toEqual(startTimes(plain.calls));
      }),
      seeded(80),
    );
  });

  it("two starts are never closer than max allows, and never further apart than min asks for, cooldowns aside", async () => {
    const story = fc.record({
      minMs: fc.integer({ min: 200, max: 5_000 }),
      maxMs: fc.integer({ min: 1, max: 200 }),
      answers: fc.array(fc.oneof(anyBad, fc.constant<Outcome>("success")), { minLength: 10, maxLength: 60 }),
      latencyMs: fc.integer({ min: 0, max: 400 }),
    });
    await fc.assert(
      fc.asyncProperty(story, async ({ minMs, maxMs, answers, latencyMs }) => {
        const clock = new VirtualClock();
        const adaptive = { min: { count: 1, per: minMs }, max: { count: 1, per: maxMs } };
        const limiter = politely({ default: { adaptive, cooldown: 0, backoff: "none" } }, { clock });
        const startsUs: number[] = [];
        const asked = answers.map(async (outcome) => {
          const permit = await limiter.acquire(host);
          startsUs.push(toUs(permit.startedAtMs));
          clock.setTimer(clock.now() + latencyMs, () => permit.release(outcome));
        });
        await clock.runToEnd();
        await Promise.all(asked);
        const starts = startsUs.map((atUs) => ({ atUs, cost: 1 }));
        expect(gapViolation(starts, maxMs * 1000)).toBeUndefined();
        for (const [index, atUs] of startsUs.entries()) {
          if (index > 0) expect(atUs - startsUs[index - 1]).toBeLessThanOrEqual(Math.max(minMs, maxMs) * 1000);
        }
      }),
      seeded(120),
    );
  });

  it("hosts do not influence each other, whatever they answer", async () => {
    const anyReply = fc.record({
      outcome: fc.oneof(anyBad, fc.constant<Outcome>("success")),
      afterMs: fc.integer({ min: 0, max: 3_000 }),
    });
    const anyReplies = fc.array(anyReply, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(anyReplies, anyReplies, fc.boolean(), async (ours, theirs, hasHolds) => {
        const holds: Limits = hasHolds ? {} : { cooldown: 0, backoff: "none" };
        const startsOfOurs = async (...others: readonly Traffic[]): Promise<readonly number[]> => {
          const clock = new VirtualClock();
          const limiter = politely({ default: { rate: "5/s", adaptive: true, ...holds } }, { clock });
          const [driven] = await drive(limiter, clock, { host, site: inTurn(ours), seconds: 60 }, ...others);
          return driven.startsS;
        };
        const alone = await startsOfOurs();
        expect(await startsOfOurs({ host: "b.example", site: inTurn(theirs), seconds: 60 })).toEqual(alone);
      }),
      seeded(40),
    );
  });
});

/** A site that gives these replies one after the other, over and over. */
function inTurn(replies: readonly Reply[]): Site {
  let next = 0;
  return () => replies[next++ % replies.length];
}
