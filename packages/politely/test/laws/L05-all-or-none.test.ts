import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained, type Script } from "../oracle/script.js";
import { anyEnding, anyScript } from "./arbitraries.js";
import { play, startedCalls, startTimes } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, type World, worldCost, worldHosts, worldScopes } from "./worlds.js";

describe("L5 all or none", () => {
  it("takes nothing anywhere for a try that is refused, or for a look", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({
          hosts: worldHosts,
          scopes: worldScopes,
          maxCost: worldCost(world),
          tries: true,
          looks: true,
          endings: anyEnding,
        }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        const script = drained(body, 8, 3_000_000);
        const policies = [toPolicy(world)];
        const asked = await play(script, { policies });
        const silent = await play(withoutSteps(script, asked.refusedTries), { policies });
        expect(startTimes(asked.calls)).toEqual(startTimes(silent.calls));
      }),
      seeded(100),
    );
  });

  it("takes nothing anywhere for a wait that is refused because it may not wait", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({ hosts: worldHosts, scopes: worldScopes, maxCost: worldCost(world) }),
        fc.infiniteStream(fc.boolean()),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body, flips]) => {
        const impatient = body.map(({ afterUs, step }) =>
          step.kind === "acquire" && flips.next().value === true
            ? { afterUs, step: { ...step, ask: { ...step.ask, maxWaitUs: 0 } } }
            : { afterUs, step },
        );
        const script = drained(impatient, 8, 3_000_000);
        const policies = [toPolicy(world)];
        const asked = await play(script, { policies });
        const steps = [...script.entries()].filter(([, { step }]) => step.kind === "acquire").map(([number]) => number);
        const refused = new Set(asked.calls.filter((call) => call.fate === "rejected").map((call) => steps[call.id]));
        const silent = await play(withoutSteps(script, refused), { policies });
        const kept = asked.calls.filter((call) => call.fate !== "rejected");
        expect(startTimes(kept)).toEqual(startTimes(silent.calls));
        for (const call of asked.calls) {
          if (call.fate === "rejected")
            expect([call.leftUs, call.error]).toEqual([
              call.arrivedUs,
              expect.objectContaining({ code: "POLITELY_DEADLINE" }),
            ]);
        }
      }),
      seeded(80),
    );
  });

  it("counts a start under all of its keys at one instant, so that a scope with room waits for the one without", async () => {
    const clock = new VirtualClock();
    const limiter = politely(
      {
        default: { window: "2/10s" },
        global: { window: "5/10s" },
        scopes: { "key:*": { window: "1/20s" }, "proxy:*": { concurrency: 1 } },
      },
      { clock },
    );
    const target = { host: "a.example", scopes: ["key:x", "proxy:y"] };
    const held = limiter.tryAcquire(target);
    expect(held).toBeDefined();
    // The key is spent and the proxy is taken; the host and all together still have room, and keep it.
    for (let index = 0; index < 10; index++) expect(limiter.tryAcquire(target)).toBeUndefined();
    expect(limiter.tryAcquire({ host: "b.example", scopes: ["proxy:y"] })).toBeUndefined();
    expect(limiter.tryAcquire("a.example")).toBeDefined();
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
    expect(limiter.tryAcquire("b.example")).toBeDefined();
    expect(limiter.tryAcquire("c.example")).toBeDefined();
    expect(limiter.tryAcquire("d.example")).toBeDefined();
    expect(limiter.tryAcquire("e.example")).toBeUndefined();
    held?.release();
    await clock.advance(10_000);
    expect(limiter.tryAcquire(target)).toBeUndefined();
    await clock.advance(10_000);
    expect(limiter.tryAcquire(target)).toBeDefined();
  });

  it("starts nobody early or never for having several keys: all are served in the end", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({ hosts: worldHosts, scopes: worldScopes, maxCost: worldCost(world), maxLength: 25 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        // The heaviest start costs 6 units of 3 s each, then a window of 4 s from its answer: less than five rounds.
        const run = await play(drained(body, 5 * body.length, 6_000_000), { policies: [toPolicy(world)] });
        expect(startedCalls(run)).toHaveLength(run.calls.length);
      }),
      { ...seeded(60), examples: [[[slowest, allHeavy]]] },
    );
  });
});

const slowest: World = { host: { rate: { count: 1, perUs: 3_000_000, burst: 6 } }, scopes: {} };
const allHeavy: Script = Array.from({ length: 25 }, () => ({
  afterUs: 0,
  step: { kind: "acquire", ask: { host: "a.example", cost: 6 } },
}));

/** The script without these steps; every other step stays where it was in time. */
function withoutSteps(script: Script, gone: ReadonlySet<number>): Script {
  let owedUs = 0;
  return script.flatMap(({ afterUs, step }, number) => {
    owedUs += afterUs;
    if (gone.has(number)) return [];
    const kept = { afterUs: owedUs, step };
    owedUs = 0;
    return [kept];
  });
}
