import type { PolicyInput } from "politely";
import { describe, expect, it } from "vitest";
import { peakInFlight } from "../../src/plan/peakInFlight.js";
import { planRun } from "../../src/plan/planRun.js";
import { bindingText } from "../../src/plan/planSentences.js";
import { playThrough } from "./playThrough.js";

const wallMs = Date.UTC(2026, 0, 15, 12);
const counts = (record: Record<string, number>): Map<string, number> => new Map(Object.entries(record));

describe("planRun", () => {
  it("ends with the last answer of the slowest host", () => {
    const plan = planRun(counts({ "a.org": 3, "b.org": 11 }), {}, { wallMs });
    expect(plan.durationMs).toBe(10_200);
    expect(plan.hosts.map(({ key, endsAtMs }) => [key, endsAtMs])).toEqual([
      ["b.org", 10_200],
      ["a.org", 2_200],
    ]);
    expect(plan.longPole?.key).toBe("b.org");
  });

  it("tells which limit each host waits for and where it comes from", () => {
    const policy = {
      hosts: {
        "Gap.org": { minDelay: "3s", rate: "1/s" },
        "*.win.org": { window: ["100/s", "5/min"] },
        "few.org": { concurrency: 2 },
        "day.org": { quota: { count: 2, per: "day" } },
      },
    } as const;
    const keys = { "gap.org": 4, "x.win.org": 9, "few.org": 9, "day.org": 5, "other.org": 2, localhost: 5 };
    const plan = planRun(counts(keys), policy, { wallMs });
    const binds = Object.fromEntries(plan.hosts.map(({ key, binds: by, origin }) => [key, [by?.text, origin]]));
    expect(binds).toEqual({
      "gap.org": ["at least 3 s between starts", "hosts.gap.org"],
      "x.win.org": ["window 5/min", "hosts.*.win.org"],
      "few.org": ["concurrency 2", "hosts.few.org"],
      "day.org": ["quota 2/day UTC", "hosts.day.org"],
      "other.org": ["rate 1/s", "default"],
      localhost: [undefined, "localhost"],
    });
  });

  it("counts a quota on the calendar that it is given", () => {
    const policy = { default: { quota: { count: 2, per: "day" } } } as const;
    const plan = planRun(counts({ "a.org": 5 }), policy, { wallMs, latency: 0 });
    expect([...plan.hosts[0].starts]).toEqual([0, 0, 12 * 3_600_000, 12 * 3_600_000, 36 * 3_600_000]);
  });

  it("finds presets, the collector's entries and groups by domain as the library does", () => {
    const named = planRun(counts({ "export.arxiv.org": 2, "reuters.com": 3 }), { presets: ["arxiv", "collector"] });
    expect(named.hosts.map(({ origin }) => origin).sort()).toEqual([
      "presets.arxiv",
      "presets.collector (hosts.reuters.com)",
    ]);
    const grouped = planRun(counts({ "example.co.uk": 3 }), {
      groupBy: "domain",
      hosts: { "example.co.uk": { rate: "2/s" } },
    });
    expect(grouped.durationMs).toBe(1_200);
  });

  it.each([
    [{ "arxiv.org": 10, "export.arxiv.org": 4, "a.org": 3 }, undefined],
    [{ "arxiv.org": 3, "export.arxiv.org": 7, "a.org": 9, "b.org": 9 }, { rate: "1/s" as const }],
    [{ "export.arxiv.org": 5, "a.org": 3 }, { concurrency: 1 }],
  ])("plans hosts that their site counts as one as the engine starts them: %j, global %j", async (record, global) => {
    const policy = { presets: ["arxiv"], ...(global === undefined ? {} : { global }) };
    const played = await playThrough(counts(record), policy, { latencyMs: 200, wallMs });
    const plan = planRun(counts(record), policy, { wallMs, hasWhatIf: false });
    const planned = Object.fromEntries(plan.hosts.map(({ key, starts }) => [key, [...starts]]));
    expect(planned).toEqual(Object.fromEntries(played));
  });

  it("loosens the budget of all hosts of such a site, and says who is last then", () => {
    const policy = { presets: ["arxiv"] };
    const { longPole, durationMs } = planRun(counts({ "arxiv.org": 30, "export.arxiv.org": 30 }), policy, { wallMs });
    expect(durationMs).toBe(59 * 3_000 + 200);
    expect(longPole).toMatchObject({ key: "export.arxiv.org", ties: 0, whatIf: { scope: "host" } });
    // Four in three seconds instead of one, and one at a time of 200 ms.
    expect(longPole?.whatIf?.durationMs).toBeLessThan(durationMs / 3);
  });

  it.each([
    [{ "arxiv.org": 4, "export.arxiv.org": 3, "a.org": 3 }, { minDelay: "10s" }, undefined],
    [{ "arxiv.org": 9, "export.arxiv.org": 2 }, { window: "5/min", rate: "1/s", burst: 2 }, undefined],
    [{ "arxiv.org": 5, "export.arxiv.org": 5 }, { concurrency: 1 }, undefined],
    [{ "arxiv.org": 5, "export.arxiv.org": 5 }, { minDelay: "4s", countFrom: "answer" }, undefined],
    [{ "arxiv.org": 3, "export.arxiv.org": 7, "a.org": 9, "b.org": 9 }, { minDelay: "4s" }, { rate: "1/s" }],
    [{ "arxiv.org": 3, "export.arxiv.org": 3, "a.org": 3 }, { concurrency: 1 }, { concurrency: 1 }],
    [{ "arxiv.org": 3, "export.arxiv.org": 3 }, { enabled: false, minDelay: "1min" }, undefined],
  ] as const)(
    "plans the budget that a policy has for such hosts instead: %j, %j, global %j",
    async (record, scope, global) => {
      const policy: PolicyInput = {
        presets: ["arxiv"],
        scopes: { "preset:arxiv": scope },
        ...(global === undefined ? {} : { global }),
      };
      for (const latencyMs of [200, 7_000]) {
        const played = await playThrough(counts(record), policy, { latencyMs, wallMs });
        const plan = planRun(counts(record), policy, { wallMs, latency: latencyMs, hasWhatIf: false });
        const planned = Object.fromEntries(plan.hosts.map(({ key, starts }) => [key, [...starts]]));
        expect(planned).toEqual(Object.fromEntries(played));
      }
    },
  );

  it("names such a budget where it is what holds hosts back, and loosens that", () => {
    const policy = { presets: ["arxiv"], scopes: { "preset:arxiv": { minDelay: "10s" } } } as const;
    const plan = planRun(counts({ "arxiv.org": 30, "export.arxiv.org": 30 }), policy, { wallMs });
    expect(plan.durationMs).toBe(590_200);
    expect(plan.hosts.map(bindingText)).toEqual([
      "at least 10 s between starts (scopes.preset:arxiv)",
      "at least 10 s between starts (scopes.preset:arxiv)",
    ]);
    // Eleven starts in ten seconds instead of one; each of the two still has one in three seconds.
    expect(plan.longPole?.whatIf).toMatchObject({ scope: "host", durationMs: 909.091 + 29 * 3_000 + 200 });
  });

  it("takes the default limits for a key that is no host's name", () => {
    expect(planRun(counts({ "team A / b": 3 }), {}, { wallMs }).durationMs).toBe(2_200);
  });

  it("says what one more request a second at the long pole saves, and who is last then", () => {
    const policy = { hosts: { "slow.org": { rate: "1/s" }, "next.org": { rate: "1/s" } } } as const;
    const plan = planRun(counts({ "slow.org": 101, "next.org": 81 }), policy, { wallMs });
    expect(plan.longPole).toEqual({
      key: "slow.org",
      ties: 0,
      whatIf: { scope: "host", durationMs: 80_200, savedMs: 20_000, thenLast: "next.org", isEstimate: false },
    });
    const alone = planRun(counts({ "slow.org": 101 }), policy, { wallMs });
    expect(alone.longPole?.whatIf?.savedMs).toBe(50_000);
  });

  it("saves nothing at one of several hosts that are done last together", () => {
    const { longPole } = planRun(counts({ "a.org": 5, "b.org": 5, "c.org": 5, "d.org": 1 }), {}, { wallMs });
    expect(longPole).toMatchObject({ key: "a.org", ties: 2, whatIf: { savedMs: 0, thenLast: "b.org" } });
  });

  it("loosens the shared budget where that holds back the last host", () => {
    const policy = { default: { rate: "100/s" }, global: { rate: "1/s" } } as const;
    const plan = planRun(counts({ "a.org": 50, "b.org": 51 }), policy, { wallMs });
    expect(plan.durationMs).toBe(100_200);
    expect(plan.hosts[0].binds).toMatchObject({ scope: "global", text: "rate 1/s" });
    expect(plan.longPole?.whatIf).toMatchObject({ scope: "global", savedMs: 50_000, durationMs: 50_200 });
  });

  it.each([
    { minDelay: "2s" },
    { window: "30/min" },
    { window: ["2/4s", "30/min"] },
    { quota: { count: 10, per: "hour" } },
    { concurrency: 1 },
    { rate: "0.5/s", burst: 3 },
    { adaptive: { max: "0.5/s" } },
  ] as const)("gets faster with one more request a second under %j", (limits) => {
    const plan = planRun(counts({ "a.org": 90 }), { default: limits }, { wallMs, latency: "2s" });
    expect(plan.longPole?.whatIf?.savedMs).toBeGreaterThan(0);
  });

  it("keeps at most as many in flight as asked, and does as hosts would alone when that is plenty", () => {
    const many = counts(Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`h${index}.org`, 5])));
    const free = planRun(many, {}, { wallMs });
    expect(peakInFlight(free)).toBe(30);
    expect(planRun(many, {}, { wallMs, concurrency: 30 }).durationMs).toBe(free.durationMs);
    const tight = planRun(many, {}, { wallMs, concurrency: 3 });
    expect(peakInFlight(tight)).toBe(3);
    expect(tight.durationMs).toBe(10_000);
    expect(tight.hosts[0].binds).toMatchObject({ scope: "global", text: "concurrency 3" });
  });

  it("exempts this machine from the shared budget, as the library does", () => {
    const plan = planRun(counts({ localhost: 100, "a.org": 2 }), { global: { rate: "1/s" } }, { wallMs });
    expect(plan.hosts.map(({ key, endsAtMs }) => [key, endsAtMs])).toEqual([
      ["a.org", 1_200],
      ["localhost", 200],
    ]);
  });

  it("estimates what lies more than a hundred years ahead, alone and in a shared budget", () => {
    const yearMs = 365 * 86_400_000;
    for (const policy of [
      { default: { rate: "1/365d" } },
      { default: { rate: "1/365d", burst: 2 } },
      { default: { quota: { count: 1, per: "month" } } },
      { default: { rate: "1/s" }, global: { rate: "1/365d" } },
    ] as const) {
      const count = "quota" in policy.default ? 12_000 : 1_000;
      const plan = planRun(counts({ "a.org": count }), policy, { wallMs });
      expect(plan.isEstimate).toBe(true);
      expect(plan.durationMs / yearMs).toBeGreaterThan(980);
      expect(plan.durationMs / yearMs).toBeLessThan(1_020);
    }
  });

  it("frees a place at maxHold when answers take longer", () => {
    const policy = { default: { concurrency: 1, maxHold: "1s" } } as const;
    expect([...planRun(counts({ "a.org": 3 }), policy, { wallMs, latency: "1min" }).hosts[0].starts]).toEqual([
      0, 1_000, 2_000,
    ]);
  });

  it("is empty for no requests", () => {
    const plan = planRun(counts({ "a.org": 0 }), {});
    expect(plan).toMatchObject({ requests: 0, durationMs: 0, hosts: [], longPole: undefined });
  });

  it.each([
    [{ "a.org": -1 }, {}, /count of "a.org"/],
    [{ "a.org": 1.5 }, {}, /count of "a.org"/],
    [{ "a.org": 1 }, { latency: "11min" as const }, /latency must be/],
    [{ "a.org": 1 }, { concurrency: 0 }, /concurrency must be/],
  ])("refuses %j with %j", (record, options, message) => {
    expect(() => planRun(counts(record as Record<string, number>), {}, options)).toThrow(message);
  });
});
