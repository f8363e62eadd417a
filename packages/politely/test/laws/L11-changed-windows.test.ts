import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Limits, Permit, PolicyInput, Target } from "../../src/index.js";
import { toLimits, type WindowSpec } from "../oracle/spec.js";
import { toUs } from "../oracle/trace.js";
import { type CountedStart, WindowMemory } from "../oracle/windowMemory.js";
import { rig } from "../verbs/support.js";
import { seeded } from "./seeded.js";

const places: readonly { title: string; target: Target; policyOf: (limits: Limits) => PolicyInput }[] = [
  { title: "a host", target: "a.example", policyOf: (limits) => ({ default: limits }) },
  { title: "everything", target: "a.example", policyOf: (limits) => ({ default: {}, global: limits }) },
  {
    title: "an intent",
    target: { host: "a.example", intent: "api" },
    policyOf: (limits) => ({ default: {}, hosts: { "a.example": { intents: { api: limits } } } }),
  },
];

const window = fc.record({
  count: fc.constantFrom(1, 1, 2, 3, 5),
  perUs: fc.constantFrom(100, 300, 1_000, 5_000).map((ms) => ms * 1_000),
});
const windows = fc.oneof(
  { weight: 3, arbitrary: fc.array(window, { minLength: 1, maxLength: 1 }) },
  { weight: 1, arbitrary: fc.array(window, { minLength: 2, maxLength: 3 }) },
);

type Step =
  | { readonly kind: "start"; readonly units: number }
  | { readonly kind: "back" | "unused"; readonly index: number }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "configure"; readonly policy: number }
  | { readonly kind: "check" | "stats" };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("start" as const), units: fc.constantFrom(1, 1, 1, 2) }) },
  {
    weight: 3,
    // Mostly the oldest, which windows have long let go of.
    arbitrary: fc.record({
      kind: fc.constantFrom("back" as const, "unused" as const, "unused" as const),
      index: fc.constantFrom(0, 0, 1, 4),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("advance" as const),
      ms: fc.oneof(fc.integer({ min: 1, max: 150 }), fc.constantFrom(99, 100, 101, 299, 300, 700, 1_000)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("configure" as const), policy: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("check" as const, "stats" as const) }) },
);

describe("L11 windows that are made longer, shorter, larger, smaller, and set back", () => {
  it.each(places)(
    "judge the starts already made, and nobody's look changes which: $title",
    async ({ target, policyOf }) => {
      const scene = fc.tuple(
        fc.array(windows, { minLength: 3, maxLength: 3 }),
        fc.array(anyStep, { minLength: 10, maxLength: 60, size: "max" }),
      );
      await fc.assert(
        fc.asyncProperty(scene, async ([specs, steps]) => {
          const policies = specs.map((each) => policyOf(toLimits({ windows: each })));
          const { clock, limiter } = rig(policies[0]);
          const memory = new WindowMemory(specs[0]);
          const open: { readonly permit: Permit; readonly start: CountedStart }[] = [];
          for (const step of steps) {
            const nowUs = toUs(clock.now());
            if (step.kind === "advance") await clock.advance(step.ms);
            else if (step.kind === "check") limiter.check(target);
            else if (step.kind === "stats") {
              limiter.stats();
              memory.mayForget(nowUs);
            } else if (step.kind === "configure") {
              limiter.configure(policies[step.policy]);
              memory.change(specs[step.policy], nowUs);
            } else if (step.kind === "start") {
              const units = Math.min(step.units, mostUnits(memory.windows));
              const [mustRefuse, mustGrant] = [memory.mustRefuse(units, nowUs), memory.mustGrant(units, nowUs)];
              const permit = limiter.tryAcquire(target, { cost: units });
              if (permit === undefined) expect(mustGrant).toBe(false);
              else {
                expect(mustRefuse).toBe(false);
                open.push({ permit, start: memory.start(nowUs, units) });
              }
            } else if (step.kind === "back" || step.kind === "unused") {
              const [one] = open.splice(step.index % Math.max(1, open.length), 1);
              if (one === undefined) continue;
              one.permit.release(step.kind === "unused" ? "unused" : undefined);
              one.start.isUnused = step.kind === "unused";
            }
          }
        }),
        seeded(300),
      );
    },
  );
});

function mostUnits(specs: readonly WindowSpec[]): number {
  return Math.min(...specs.map(({ count }) => count));
}
