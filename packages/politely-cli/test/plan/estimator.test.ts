import fc from "fast-check";
import type { PolicyInput } from "politely";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { createEstimator } from "../../src/plan/estimator.js";
import { planRun } from "../../src/plan/planRun.js";

const wallMs = Date.UTC(1970, 0, 1, 12);
const policy: PolicyInput = {
  default: { rate: "2/s", burst: 4 },
  hosts: { "w.org": { window: "10/min" }, "c.org": { concurrency: 2, countFrom: "answer" } },
};

describe("an estimator", () => {
  it("says at every moment of a run on schedule how long it still takes", () => {
    const count = fc.integer({ min: 0, max: 40 });
    fc.assert(
      fc.property(count, count, count, fc.nat(60_000), (a, w, c, nowMs) => {
        const totals = new Map([
          ["a.org", a],
          ["w.org", w],
          ["c.org", c],
        ]);
        const plan = planRun(totals, policy, { wallMs, hasWhatIf: false });
        const left = new Map(plan.hosts.map(({ key, starts }) => [key, starts.filter((ms) => ms > nowMs).length]));
        const remainingMs = createEstimator(totals, policy, { wallMs }).remainingMs(left);
        const busy = plan.hosts.filter(({ key }) => (left.get(key) ?? 0) > 0);
        // Since the last start of each host: it is on schedule from there on.
        const lastMs = ({ starts }: (typeof busy)[number]): number => starts.filter((ms) => ms <= nowMs).at(-1) ?? 0;
        const most = busy.reduce((top, host) => Math.max(top, host.endsAtMs - lastMs(host)), 0);
        expect(remainingMs).toBeCloseTo(most, 6);
      }),
      seeded(100),
    );
  });

  it("agrees with the plan at the beginning, and goes on at the same pace beyond what it plans", () => {
    const totals = new Map([["a.org", 1_000_000]]);
    expect(
      createEstimator(totals, { default: { window: "100/min" } }, { wallMs }).remainingMs(totals) / 60_000,
    ).toBeCloseTo(10_000, -2);
    expect(createEstimator(totals, { default: { rate: "1/s" } }, { wallMs }).remainingMs(totals)).toBe(999_999_200);
  });

  it("knows the pace of each kind of limit, though it plans only the first of many requests", () => {
    const totals = new Map(Array.from({ length: 2_500 }, (_, host) => [`h${host}.org`, 600]));
    const kinds = [
      [{ window: "100/min" }, 300_000],
      [{ rate: "2/s", burst: 100 }, 250_000],
      [{ minDelay: "1s", countFrom: "answer" }, 718_800],
      [{ concurrency: 2 }, 59_800],
      [{ quota: { count: 100, per: "hour" } }, 18_000_000],
    ] as const;
    for (const [limits, expectedMs] of kinds) {
      const hosts = Object.fromEntries([...totals.keys()].map((key) => [key, { ...limits }]));
      const ms = createEstimator(totals, { hosts }, { wallMs }).remainingMs(totals);
      expect(ms / expectedMs).toBeGreaterThan(0.8);
      expect(ms / expectedMs).toBeLessThan(1.2);
    }
  });

  it("takes a shared budget into account", () => {
    const totals = new Map(Array.from({ length: 100 }, (_, host) => [`h${host}.org`, 10]));
    const shared = { default: { rate: "1/s" }, global: { rate: "10/s" } } as const;
    expect(createEstimator(totals, shared, { wallMs }).remainingMs(totals)).toBe(100_100);
    expect(createEstimator(totals, {}, { wallMs, concurrency: 2 }).remainingMs(totals)).toBe(100_000);
  });

  it("says 0 when nothing is left, and takes a key it never heard of as a new one", () => {
    const estimator = createEstimator(new Map([["a.org", 5]]), {}, { wallMs });
    expect(estimator.remainingMs(new Map())).toBe(0);
    expect(estimator.remainingMs(new Map([["a.org", 0]]))).toBe(0);
    expect(estimator.remainingMs(new Map([["new.org", 4]]))).toBe(3_200);
  });
});
