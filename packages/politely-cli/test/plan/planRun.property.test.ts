import fc from "fast-check";
import type { Limits, PolicyInput } from "politely";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { planRun } from "../../src/plan/planRun.js";
import { playThrough } from "./playThrough.js";
import { replay } from "./replay.js";

// Two seconds before midnight: a quota's period ends soon.
const wallMs = Date.UTC(2026, 10, 15, 23, 59, 58);

const wholeMs = fc.constantFrom("1/s", "4/s", "0.5/s", "20/min", "2/4s") as fc.Arbitrary<"1/s">;
const anyRate = fc.constantFrom("1/s", "7/s", "0.3/s", "20/min", "2/3s") as fc.Arbitrary<"1/s">;
const quota = fc.record({
  count: fc.integer({ min: 1, max: 6 }),
  per: fc.constantFrom("hour" as const, "day" as const),
});
const limitsOf = (rate: fc.Arbitrary<"1/s">) => ({
  minDelay: fc.constantFrom(0, 35, 250, 1_700),
  rate,
  window: fc.oneof(rate, fc.array(rate, { minLength: 1, maxLength: 2 })),
  concurrency: fc.integer({ min: 1, max: 3 }),
  countFrom: fc.constantFrom("start" as const, "answer" as const),
  maxHold: fc.constantFrom("50ms" as const, "10s" as const),
});
// The engine finds the end of a quota's period a microsecond late when it looks between two milliseconds, so quotas are with rates in whole ones.
const dated: fc.Arbitrary<Limits> = fc.record({ ...limitsOf(wholeMs), quota }, { requiredKeys: [] });
const undated: fc.Arbitrary<Limits> = fc.record(limitsOf(anyRate), { requiredKeys: [] });
const withBurst = (limits: fc.Arbitrary<Limits>): fc.Arbitrary<Limits> =>
  fc
    .tuple(limits, fc.integer({ min: 1, max: 4 }))
    .map(([some, burst]) => (some.rate === undefined ? some : { ...some, burst }));
/** Limits of two hosts and of all together. */
const three = fc.oneof(
  fc.tuple(withBurst(dated), withBurst(dated), withBurst(dated)),
  fc.tuple(withBurst(undated), withBurst(undated), withBurst(undated)),
);
const counts = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 4, maxLength: 4 });
const latencyMs = fc.constantFrom(0, 1, 80, 200, 3_000);
const names = ["a.example", "b.example", "sub.c.example", "localhost"];

function countsOf(numbers: readonly number[]): Map<string, number> {
  return new Map(numbers.map((count, index) => [names[index], count]));
}

describe("a plan", () => {
  it("has exactly the starts that the engine makes on virtual time, for hosts that share nothing", async () => {
    await fc.assert(
      fc.asyncProperty(counts, three, latencyMs, async (numbers, [one, other], latency) => {
        const policy: PolicyInput = { default: one, hosts: { "B.example": other, "*.c.example": one } };
        const played = await playThrough(countsOf(numbers), policy, { latencyMs: latency, wallMs });
        const plan = planRun(countsOf(numbers), policy, { latency, wallMs, hasWhatIf: false });
        for (const { key, starts } of plan.hosts) expect([...starts]).toEqual(played.get(key));
        expect(plan.hosts.length).toBe(numbers.filter((count) => count > 0).length);
      }),
      seeded(150),
    );
  });

  it("starts nothing that the engine would refuse and leaves nothing that it would grant, for hosts that share a budget", () => {
    fc.assert(
      fc.property(counts, three, latencyMs, (numbers, [one, other, global], latency) => {
        const policy: PolicyInput = { default: one, hosts: { "b.example": other }, global };
        const plan = planRun(countsOf(numbers), policy, { latency, wallMs, hasWhatIf: false });
        expect(replay(plan, policy, { latencyMs: latency, wallMs })).toEqual({ refused: [], left: [] });
      }),
      seeded(200),
    );
  });

  it("does the same for hosts of a site that have a budget of the policy's", () => {
    fc.assert(
      fc.property(counts, three, latencyMs, fc.boolean(), (numbers, [one, scope, global], latency, hasGlobal) => {
        // A request keeps its place in the budget for as long as at its host: a shorter maxHold there is not planned.
        const scopes = { "preset:arxiv": { ...scope, maxHold: "10min" } } as const;
        const policy: PolicyInput = { default: one, presets: ["arxiv"], scopes, ...(hasGlobal ? { global } : {}) };
        const hosts = ["arxiv.org", "export.arxiv.org", "a.example", "localhost"];
        const asked = new Map(numbers.map((count, index) => [hosts[index], count]));
        const plan = planRun(asked, policy, { latency, wallMs, hasWhatIf: false });
        expect(replay(plan, policy, { latencyMs: latency, wallMs })).toEqual({ refused: [], left: [] });
      }),
      seeded(200),
    );
  });

  it("has the starts of the engine's own queue for hosts that share a budget, but for ties in one case of twenty", async () => {
    let cases = 0;
    let same = 0;
    await fc.assert(
      fc.asyncProperty(counts, three, latencyMs, async (numbers, [one, other, global], latency) => {
        const policy: PolicyInput = { default: one, hosts: { "b.example": other }, global };
        const played = await playThrough(countsOf(numbers), policy, { latencyMs: latency, wallMs });
        const plan = planRun(countsOf(numbers), policy, { latency, wallMs, hasWhatIf: false });
        cases += 1;
        if (plan.hosts.every(({ key, starts }) => starts.join() === played.get(key)?.join())) same += 1;
      }),
      seeded(200),
    );
    expect(same / cases).toBeGreaterThan(0.95);
  });
});
