import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Limits, Permit, PolicyInput } from "../../src/index.js";
import { seeded } from "../laws/seeded.js";
import { expectBooks, granted, rig } from "../verbs/support.js";

const MOST = 2;
const PERIOD_MS = 10_000;
const HOLD_MS = 30_000;
const limits: Limits = { window: `${MOST}/10s`, concurrency: 3 };

const targets = ["http://x.example/", "http://x.example:8080/", "http://www.x.example/", "http://api.x.example/"];

/** Three ways of making keys, each with a plain account of itself. */
const ways: readonly { readonly policy: PolicyInput; readonly keyOf: (target: string) => string }[] = [
  { policy: { default: limits }, keyOf: (target) => new URL(target).hostname },
  {
    policy: { default: limits, hosts: { "x.example:8080": limits } },
    keyOf: (target) => new URL(target).host,
  },
  {
    policy: { default: limits, groupBy: (url) => url.hostname.split(".").slice(-2).join(".") },
    keyOf: () => "x.example",
  },
];

type Step =
  | { readonly kind: "start"; readonly target: string }
  | { readonly kind: "refused"; readonly target: string }
  | { readonly kind: "configure"; readonly way: number }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "back"; readonly index: number }
  | { readonly kind: "unused"; readonly index: number };

const target = fc.constantFrom(...targets);
const index = fc.nat(20);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("start" as const), target }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("refused" as const), target }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("configure" as const), way: fc.nat(ways.length - 1) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 6_000 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("back" as const, "unused" as const), index }) },
);

interface Start {
  readonly target: string;
  readonly atMs: number;
  readonly permit: Permit;
  isOpen: boolean;
  isUnused: boolean;
}

describe("keys that come and go with the policy", () => {
  it("never let a start through that their windows and holds forbid, and lose none from the books", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
        const { clock, limiter } = rig(ways[0].policy);
        let { keyOf } = ways[0];
        const starts: Start[] = [];
        const heldUntilMs = new Map<string, number>();
        for (const step of steps) {
          const nowMs = clock.now();
          if (step.kind === "advance") await clock.advance(step.ms);
          else if (step.kind === "configure") {
            keyOf = ways[step.way].keyOf;
            limiter.configure(ways[step.way].policy);
          } else if (step.kind === "back" || step.kind === "unused") {
            const start = starts.filter(({ isOpen }) => isOpen)[step.index];
            if (start === undefined) continue;
            start.isOpen = false;
            start.isUnused = step.kind === "unused";
            start.permit.release(step.kind === "unused" ? "unused" : undefined);
          } else {
            const permit = limiter.tryAcquire(step.target);
            if (permit === undefined) continue;
            const same = starts.filter((start) => keyOf(start.target) === keyOf(step.target) && !start.isUnused);
            expect(same.filter(({ atMs }) => atMs > nowMs - PERIOD_MS).length).toBeLessThan(MOST);
            expect(heldUntilMs.get(step.target) ?? 0).toBeLessThanOrEqual(nowMs);
            const isOpen = step.kind === "start";
            starts.push({ target: step.target, atMs: nowMs, permit, isOpen, isUnused: false });
            if (isOpen) continue;
            permit.release({ status: 429, headers: { "retry-after": String(HOLD_MS / 1_000) } });
            for (const each of targets.filter((other) => keyOf(other) === keyOf(step.target))) {
              heldUntilMs.set(each, nowMs + HOLD_MS);
            }
          }
          const rows = limiter.stats();
          for (const row of rows) expectBooks(row);
          expect(rows.reduce((sum, row) => sum + row.granted, 0)).toBe(starts.length);
          expect(rows.reduce((sum, row) => sum + row.inFlight, 0)).toBe(starts.filter(({ isOpen }) => isOpen).length);
          expect(rows.every(({ host, released }) => !host.includes("\n") && released >= 0)).toBe(true);
        }
        // Everything is free again in the end.
        for (const start of starts) start.permit.release();
        await clock.advance(4_000_000);
        for (const each of targets) {
          granted(limiter.tryAcquire(each)).release("success");
          await clock.advance(PERIOD_MS);
        }
      }),
      seeded(150),
    );
  });
});
