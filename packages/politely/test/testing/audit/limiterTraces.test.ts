import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limits, politely } from "../../../src/index.js";
import { type AuditReport, auditTrace, type TraceEntry, VirtualClock } from "../../../src/testing/index.js";
import { anyEnding, anyScript } from "../../laws/arbitraries.js";
import { play } from "../../laws/play.js";
import { seeded } from "../../laws/seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes } from "../../laws/worlds.js";
import { drained } from "../../oracle/script.js";
import { entriesOf, rounded } from "./limiterTrace.js";

const wallAtZeroMs = Date.UTC(2026, 0, 1);

const scene = anyWorld({ quota: true }).chain((world) => {
  const range = { hosts: worldHosts, scopes: worldScopes, maxCost: worldCost(world), endings: anyEnding };
  const chance = { priorities: true, tries: true, cancels: true, stalls: true };
  return fc.tuple(fc.constant(toPolicy(world)), anyScript({ ...range, ...chance }));
});

describe("auditTrace over what the limiter did", () => {
  it("finds nothing, whatever the policy, also in stamps of whole milliseconds and seconds", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async ([policy, script]) => {
        const run = await play(drained(script, 10, 3_000_000), { policies: [policy] });
        const trace = entriesOf(run);
        expect(problems(auditTrace(trace, policy, { wallAtZeroMs }))).toEqual([]);
        expect(problems(auditTrace(rounded(trace, 1), policy, { wallAtZeroMs }))).toEqual([]);
        expect(problems(auditTrace(rounded(trace, 1000), policy, { wallAtZeroMs }))).toEqual([]);
        expect(problems(auditTrace(trace, policy, { wallAtZeroMs, slackMs: 0.5 }))).toEqual([]);
      }),
      seeded(150),
    );
  });

  it("finds nothing in stamps that lie beside 1970 and have odd microseconds", async () => {
    const starts = fc.record({
      nowMs: fc.integer({ min: 0, max: 1_800_000_000 }).map((us) => 1_790_000_000_000 + us / 1000),
      count: fc.integer({ min: 1, max: 13 }),
      perMs: fc.integer({ min: 1, max: 9_999 }).map((us) => us / 10),
    });
    await fc.assert(
      fc.asyncProperty(starts, async ({ nowMs, count, perMs }) => {
        const limits = { rate: { count, per: perMs }, burst: 2, window: { count: 3, per: perMs } };
        const trace = await backlog(limits, 30, new VirtualClock({ nowMs }));
        expect(problems(auditTrace(trace, { default: limits }))).toEqual([]);
      }),
      seeded(60),
    );
  });

  it.each<[string, Limits]>([
    ["gap", { minDelay: "700ms" }],
    ["bucket", { rate: "7/s", burst: 3 }],
    ["window", { window: "5/2s" }],
    ["quota", { quota: { count: 5, per: "hour" } }],
  ])("accuses the one start of a busy %s that is moved a microsecond too early", async (_, limits) => {
    const trace = await backlog(limits, 40, new VirtualClock({ nowMs: 500, wallMs: wallAtZeroMs + 500 }));
    const policy = { default: limits };
    expect(problems(auditTrace(trace, policy, { wallAtZeroMs }))).toEqual([]);
    // The first ones start at once, and may start earlier as far as they are concerned.
    const late = trace.flatMap(({ startedAtMs }, index) => (Number(startedAtMs) > 500 ? [index] : []));
    fc.assert(
      fc.property(fc.constantFrom(...late), fc.integer({ min: 1, max: 50_000 }), (index, us) => {
        // Of those that wait for the same instant, the first is the one that is not allowed to be earlier.
        const first = trace.findIndex(({ startedAtMs }) => startedAtMs === trace[index].startedAtMs);
        const moved = trace.map((entry, at) =>
          at === first ? { ...entry, startedAtMs: Number(entry.startedAtMs) - us / 1000 } : entry,
        );
        const { isClean, keys } = auditTrace(moved, policy, { wallAtZeroMs });
        expect(isClean).toBe(false);
        expect(keys[0].violations[0].proof.some((mark) => mark.index === first)).toBe(true);
      }),
      seeded(100),
    );
  });

  it("accuses a start that takes its place before it is free", async () => {
    const trace = await backlog({ concurrency: 2 }, 20, new VirtualClock());
    const policy = { default: { concurrency: 2 } };
    expect(problems(auditTrace(trace, policy))).toEqual([]);
    const moved = trace.map((entry, at) =>
      at === 7 ? { ...entry, startedAtMs: Number(entry.startedAtMs) - 0.001 } : entry,
    );
    expect(problems(auditTrace(moved, policy))).toEqual(["a.example: 3 in flight at once, at most 2 allowed"]);
  });
});

/** So many requests at once under the limits, each 100 ms long. */
async function backlog(limits: Limits, count: number, clock: VirtualClock): Promise<TraceEntry[]> {
  const limiter = politely({ default: limits }, { clock });
  const trace: TraceEntry[] = [];
  for (let index = 0; index < count; index++) {
    void limiter.acquire("a.example").then((permit) => {
      const startedAtMs = permit.startedAtMs;
      clock.setTimer(startedAtMs + 100, () => {
        permit.release("success");
        trace.push({ host: "a.example", startedAtMs, endedAtMs: clock.now() });
      });
    });
  }
  await clock.runToEnd();
  expect(trace).toHaveLength(count);
  return trace.toSorted((one, other) => Number(one.startedAtMs) - Number(other.startedAtMs));
}

function problems({ keys }: AuditReport): string[] {
  return keys.flatMap(({ key, violations, ignoredRetryAfters }) =>
    [...violations, ...ignoredRetryAfters].map(({ says }) => `${key}: ${says}`),
  );
}
