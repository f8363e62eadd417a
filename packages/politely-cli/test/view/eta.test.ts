import type { PolicyInput } from "politely";
import { describe, expect, it } from "vitest";
import { planRun } from "../../src/plan/planRun.js";
import { Eta, type EtaProgress, type PlanInSteps } from "../../src/view/eta.js";

const policy: PolicyInput = { default: { rate: "1/s" }, hosts: { "b.example": { rate: "2/s" } } };

function progressOf(left: ReadonlyMap<string, number>, changes: Partial<EtaProgress> = {}): EtaProgress {
  const total = [...left.values()].reduce((sum, count) => sum + count, 0);
  return { total, done: 0, policy, left: () => left, ...changes };
}

/** Plans until the plan is there. */
function work(eta: Eta, progress: EtaProgress): void {
  for (let times = 0; times < 1_000; times++) eta.work(progress);
}

describe("Eta", () => {
  it("knows nothing before it has planned, and then what the planner says", () => {
    const left = new Map([
      ["a.example", 100],
      ["b.example", 100],
    ]);
    const eta = new Eta(() => 0);
    expect(eta.leftMs(progressOf(left), [], [])).toBeUndefined();
    eta.took(300);
    work(eta, progressOf(left));
    expect(eta.leftMs(progressOf(left), [], [])).toBe(planRun(left, policy, { latency: 300 }).durationMs);
  });

  it("counts down between two plans", () => {
    let nowMs = 0;
    const eta = new Eta(() => nowMs);
    const progress = progressOf(new Map([["a.example", 101]]));
    eta.took(0);
    work(eta, progress);
    nowMs = 4_000;
    expect(eta.leftMs(progress, [], [])).toBe(96_000);
  });

  it("never ends before a host in cooldown can be done", () => {
    const eta = new Eta(() => 0);
    const progress = progressOf(
      new Map([
        ["a.example", 11],
        ["b.example", 11],
      ]),
    );
    eta.took(0);
    work(eta, progress);
    expect(eta.leftMs(progress, [], [["b.example", 60_000]])).toBe(65_000);
  });

  it("never ends before a slow host is done at the pace it had lately", () => {
    const eta = new Eta(() => 10_000);
    const progress = progressOf(new Map([["a.example", 10]]));
    eta.took(0);
    work(eta, progress);
    expect(eta.leftMs(progress, [{ key: "a.example", left: 10, msEach: 2_000 }], [])).toBe(20_000);
    expect(eta.leftMs(progress, [{ key: "a.example", left: 10 }], [])).toBe(9_000);
  });

  it("never ends before a host that has to wait for its next start can be done", () => {
    const eta = new Eta(() => 0);
    const left = new Map([["a.example", 10]]);
    const progress = progressOf(left, { policy: { default: { quota: { count: 1_000, per: "day" } } } });
    eta.took(0);
    work(eta, progress);
    // The planner knows nothing of those that were spent before.
    expect(eta.leftMs(progress, [], [])).toBe(0);
    expect(eta.leftMs(progress, [{ key: "a.example", left: 10, nextStartMs: 7_200_000 }], [])).toBe(7_200_000);
  });

  it("takes the places that all hosts share into account, also for hosts that are not planned", () => {
    const hosts = (count: number) => new Map(Array.from({ length: count }, (_, index) => [`h${index}.example`, 1]));
    for (const [count, concurrency] of [
      [100, 2],
      [5_000, 4],
      [5_000, 2_500],
    ] as const) {
      const eta = new Eta(() => 0);
      const progress = progressOf(hosts(count), { concurrency });
      eta.took(1_000);
      for (let times = 0; times < 100; times++) work(eta, progress);
      expect(eta.leftMs(progress, [], [])).toBeCloseTo((count / concurrency) * 1_000, -1);
    }
  });

  it("takes a shared budget into account", () => {
    const eta = new Eta(() => 0);
    const left = new Map(Array.from({ length: 20 }, (_, index) => [`h${index}.example`, 10]));
    const progress = progressOf(left, { policy: { default: { rate: "1/s" }, global: { rate: "5/s" } } });
    eta.took(0);
    for (let times = 0; times < 100; times++) work(eta, progress);
    expect(eta.leftMs(progress, [], [])).toBe(planRun(left, progress.policy, { latency: 0 }).durationMs);
    expect(eta.leftMs(progress, [], [])).toBeGreaterThanOrEqual(39_800);
  });

  it("plans again after a second when answers take much longer than it had planned", () => {
    let nowMs = 0;
    const eta = new Eta(() => nowMs);
    const progress = progressOf(new Map([["a.example", 100]]), { policy: { default: { concurrency: 1 } } });
    work(eta, progress);
    expect(eta.leftMs(progress, [], [])).toBe(20_000);
    eta.took(1_000);
    work(eta, progress);
    expect(eta.leftMs(progress, [], [])).toBe(20_000);
    nowMs = 1_000;
    work(eta, progress);
    expect(eta.leftMs(progress, [], [])).toBe(100_000);
  });

  it("plans a part of a long list, and stretches what comes out", () => {
    let planned = 0;
    const plan: PlanInSteps = (counts) => {
      planned = [...counts.values()].reduce((sum, count) => sum + count, 0);
      return onePerSecond(counts);
    };
    const eta = new Eta(() => 0, plan);
    const progress = progressOf(new Map([["a.example", 1_000_000]]));
    work(eta, progress);
    expect(planned).toBe(100_000);
    expect(eta.leftMs(progress, [], [])).toBe(1_000_000_000);
  });

  it("plans the thousand hosts with the most left", () => {
    let planned: readonly string[] = [];
    const plan: PlanInSteps = (counts) => {
      planned = [...counts.keys()];
      return onePerSecond(counts);
    };
    const eta = new Eta(() => 0, plan);
    const progress = progressOf(new Map(Array.from({ length: 5_000 }, (_, index) => [`h${index}`, index + 1])));
    work(eta, progress);
    expect(planned).toHaveLength(1_000);
    expect(planned[0]).toBe("h4999");
    expect(eta.leftMs(progress, [], [])).toBeCloseTo(5_000_000, -3);
  });

  it("works in slices, rests between two plans, and rests longer the longer a plan took", () => {
    let nowMs = 0;
    let plans = 0;
    const plan: PlanInSteps = function* (counts) {
      plans += 1;
      // Two hundred steps of 1 ms.
      for (let step = 0; step < 200; step++) {
        nowMs += 1;
        yield;
      }
      return yield* onePerSecond(counts);
    };
    const eta = new Eta(() => nowMs, plan);
    const progress = progressOf(new Map([["a.example", 10]]));
    eta.work(progress);
    expect(nowMs).toBe(5);
    while (eta.leftMs(progress, [], []) === undefined) eta.work(progress);
    const doneAtMs = nowMs;
    nowMs = doneAtMs + 9_000;
    eta.work(progress);
    expect(plans).toBe(1);
    nowMs = doneAtMs + 10_100;
    eta.work(progress);
    expect(plans).toBe(2);
  });

  it("does without a plan where the planner throws", () => {
    let nowMs = 0;
    const eta = new Eta(
      () => nowMs,
      function* () {
        yield;
        throw new Error("no plan");
      },
    );
    const progress = progressOf(new Map([["a.example", 20]]));
    eta.work(progress);
    expect(eta.leftMs(progress, [], [])).toBeUndefined();
    eta.work({ ...progress, done: 1 });
    nowMs = 9_000;
    eta.work({ ...progress, done: 10 });
    expect(eta.leftMs({ ...progress, done: 10 }, [], [])).toBe(10_000);
  });
});

function* onePerSecond(counts: ReadonlyMap<string, number>): ReturnType<PlanInSteps> {
  yield;
  return { hosts: [...counts].map(([key, requests]) => ({ key, requests, endsAtMs: requests * 1_000 })) };
}
