import { describe, expect, it } from "vitest";
import type { Limits } from "../../../src/index.js";
import { type AuditedKey, auditTrace, createTraceAudit, type TraceEntry } from "../../../src/testing/index.js";

const host = "a.example";
const at = (...starts: readonly TraceEntry["startedAtMs"][]): TraceEntry[] =>
  starts.map((startedAtMs, index) => ({ host, startedAtMs, line: index + 1, source: "x.log" }));
const second = (number: number): readonly [number, number] => [number * 1000, number * 1000 + 1000];

function audited(trace: readonly TraceEntry[], limits: Limits): AuditedKey {
  return auditTrace(trace, { default: limits }).keys[0];
}

function says(trace: readonly TraceEntry[], limits: Limits): string[] {
  return audited(trace, limits).violations.map((violation) => violation.says);
}

describe("auditTrace", () => {
  it("names the tightest gap, with the two entries that prove it, in any order of the trace", () => {
    const { violations } = audited(at(5_000, 0, 2_400, 900), { minDelay: "1s" });
    expect(violations).toEqual([
      {
        limit: "minDelay",
        text: "1 s",
        countFrom: "start",
        allowed: 1_000,
        found: 900,
        fromMs: 0,
        untilMs: 900,
        proof: [
          { index: 1, startedAtMs: 0, line: 2, source: "x.log" },
          { index: 3, startedAtMs: 900, line: 4, source: "x.log" },
        ],
        proofCount: 2,
        says: "two starts 900 ms apart, at least 1 s asked for",
      },
    ]);
  });

  it("judges every window by its fullest interval, whose end is its own", () => {
    expect(says(at(0, 500, 999, 1_000), { window: "3/s" })).toEqual([]);
    expect(says(at(0, 500, 999, 999.999), { window: ["3/s", "2/10s"] })).toEqual([
      "4 starts within 1 s, at most 3 allowed by window 3/s",
      "4 starts within 10 s, at most 2 allowed by window 2/10s",
    ]);
  });

  it("judges a bucket over the span that exceeds it by most", () => {
    expect(says(at(0, 0, 0, 500, 1_000), { rate: "2/s", burst: 3 })).toEqual([]);
    expect(says(at(0, 0, 0, 499.999, 1_000, 1_000), { rate: "2/s", burst: 3 })).toEqual([
      "6 starts within 1 s, at most 5 allowed by rate 2/s burst 3",
    ]);
  });

  it("counts units where starts cost more than one", () => {
    const trace = [
      { host, startedAtMs: 0, cost: 3 },
      { host, startedAtMs: 100, cost: { window: 2 } },
    ];
    expect(says(trace, { window: "4/s", rate: "10/s", burst: 4 })).toEqual([
      "5 units in 2 starts within 1 s, at most 4 allowed by window 4/s",
    ]);
  });

  it("follows the calendar of the quota's time zone", () => {
    const tokyo: Limits = { quota: { count: 2, per: "day", timeZone: "Asia/Tokyo" } };
    const midnight = Date.UTC(2026, 2, 3, 15);
    expect(says(at(midnight - 2, midnight - 1, midnight, midnight + 1), tokyo)).toEqual([]);
    expect(says(at(midnight - 1, midnight, midnight + 1, midnight + 2), tokyo)).toEqual([
      "3 starts in one day of Asia/Tokyo, at most 2 allowed by quota 2/day Asia/Tokyo",
    ]);
    // The night on which New York's clocks are put back has 25 hours, and two of them are called one o'clock.
    const newYork: Limits = { quota: { count: 1, per: "hour", timeZone: "America/New_York" } };
    const one = Date.UTC(2026, 10, 1, 5);
    expect(says(at(one, one + 3_600_000), newYork)).toEqual([]);
  });

  it("judges concurrency where ends are known, and leaves out what has none", () => {
    const span = (startedAtMs: number, endedAtMs?: number): TraceEntry => ({ host, startedAtMs, endedAtMs });
    const two: Limits = { concurrency: 2 };
    expect(says([span(0, 100), span(50, 150), span(100, 200)], two)).toEqual([]);
    expect(says([span(0, 100), span(50), span(60), span(99, 150)], two)).toEqual([]);
    const { violations, peakConcurrency } = audited([span(0, 101), span(50, 150), span(100, 200)], two);
    expect(violations.map((violation) => violation.says)).toEqual(["3 in flight at once, at most 2 allowed"]);
    expect(violations[0].proof.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(peakConcurrency).toBe(3);
    expect(audited([span(0)], two).peakConcurrency).toBeUndefined();
  });

  it("counts gap and windows from answers where the policy says so", () => {
    const trace = [
      { host, startedAtMs: 0, endedAtMs: 400 },
      { host, startedAtMs: 1_000, endedAtMs: 1_100 },
    ];
    expect(says(trace, { minDelay: "1s", window: "1/s" })).toEqual([]);
    const { violations } = audited(trace, { minDelay: "1s", window: "1/s", countFrom: "answer" });
    expect(violations.map(({ limit, countFrom }) => [limit, countFrom])).toEqual([
      ["minDelay", "answer"],
      ["window", "answer"],
    ]);
    expect(says([trace[0], { host, startedAtMs: 1_400 }], { minDelay: "1s", countFrom: "answer" })).toEqual([]);
  });

  it("accuses stamps of whole seconds only of what no times inside them allow", () => {
    expect(says(at(second(0), second(0)), { minDelay: "900ms" })).toEqual([]);
    expect(says(at(second(0), second(0)), { minDelay: "1s" })).toEqual([
      "two starts less than 1 s apart, at least 1 s asked for",
    ]);
    expect(says(at(second(0), second(0), second(0)), { minDelay: "500ms" })).toEqual([
      "3 starts within 1 s, at least 500 ms from one to the next asked for",
    ]);
    // 0, 1.5 and 3 s would do, but the third was in second 2.
    expect(says(at(second(0), second(1), second(2)), { window: "1/1500ms" })).toEqual([
      "3 starts within 3 s, at most 2 fit there by window 1/1.5s",
    ]);
    expect(says(at(second(0), second(1), second(3)), { window: "1/1500ms" })).toEqual([]);
  });

  it("lets each stamp be off by the slack, if told so", () => {
    const trace = at(0, 990);
    expect(auditTrace(trace, { default: { minDelay: "1s" } }, { slackMs: 4.9 }).isClean).toBe(false);
    expect(auditTrace(trace, { default: { minDelay: "1s" } }, { slackMs: 5 }).isClean).toBe(true);
  });

  it("counts the hosts of a site that counts them as one together", () => {
    const trace = ["arxiv.org", "export.arxiv.org"].map((name, index) => ({ host: name, startedAtMs: 1_500 * index }));
    const { keys } = auditTrace(trace, { presets: ["arxiv"] });
    expect(keys.filter(({ isClean }) => !isClean).map(({ key }) => key)).toEqual(["preset:arxiv"]);
  });

  it("counts every key of a request: host, intent, scopes and all together", () => {
    const policy = {
      default: { minDelay: 0 },
      hosts: { "b.example": { window: "9/s", intents: { search: { window: "1/s" } } } },
      scopes: { "key:*": { window: "1/s" } },
      global: { window: "2/s" },
    } as const;
    const trace: TraceEntry[] = [
      { url: "https://B.example:8443/x", intent: "search", startedAtMs: 0, status: 200 },
      { host: "b.example.", intent: "search", scopes: ["key:1", "unknown"], startedAtMs: 1, status: 429 },
      { host: "c.example", scopes: ["key:1"], startedAtMs: 2 },
      { url: "http://localhost/", startedAtMs: 3 },
    ];
    const { keys } = auditTrace(trace, policy);
    expect(keys.map(({ kind, key, requests, isClean }) => [kind, key, requests, isClean])).toEqual([
      ["host", "b.example", 2, true],
      ["intent", "b.example", 2, false],
      ["global", "global", 3, false],
      ["scope", "key:1", 2, false],
      ["host", "c.example", 1, true],
      ["host", "localhost", 1, true],
    ]);
    expect(keys[0]).toMatchObject({
      origin: "hosts.b.example",
      statuses: [
        { status: 200, count: 1 },
        { status: 429, count: 1 },
      ],
      firstMs: 0,
      lastMs: 1,
    });
    expect(keys[1]).toMatchObject({ intent: "search", origin: "hosts.b.example.intents.search" });
    expect(keys[5].isLimited).toBe(false);
  });

  it("gives the peak of each limit's length, and of a second", () => {
    const starts = at(0, 10, 1_005, 1_006, 1_007, 30_000);
    const { peaks, limits } = audited(starts, { window: "100/min", minDelay: 5 });
    expect(limits).toEqual(["minDelay 5 ms", "window 100/min"]);
    expect(audited(starts, { rate: "3/s", burst: 2 }).peaks[0]).toMatchObject({ perMs: 1_000, starts: 4, allowed: 4 });
    expect(peaks).toEqual([
      { perMs: 5, starts: 3, allowed: 1, fromMs: 1_005 },
      { perMs: 1_000, starts: 4, allowed: undefined, fromMs: 10 },
      { perMs: 60_000, starts: 6, allowed: 100, fromMs: 0 },
    ]);
  });

  it("counts what was never sent for its place only", () => {
    const trace = [
      { host, startedAtMs: 0, endedAtMs: 10, unused: true },
      { host, startedAtMs: 1, endedAtMs: 10 },
    ];
    expect(says(trace, { minDelay: "1s", concurrency: 1 })).toEqual(["2 in flight at once, at most 1 allowed"]);
    expect(audited(trace, { concurrency: 1 }).requests).toBe(1);
  });

  it("names the first entries and the last of a long proof", () => {
    const trace = at(...Array.from({ length: 100 }, (_, index) => index));
    const { proof, proofCount } = auditTrace(trace, { default: { window: "5/s" } }, { maxProof: 3 }).keys[0]
      .violations[0];
    expect(proof.map(({ line }) => line)).toEqual([1, 2, 100]);
    expect(proofCount).toBe(100);
  });

  it("says which entry makes no sense, and why", () => {
    expect(() => auditTrace([...at(0), { startedAtMs: 1 }])).toThrow(
      "Entry 1 of the trace: target must have url or host",
    );
    expect(() => auditTrace(at(Number.NaN))).toThrow("Entry 0 of the trace: startedAtMs must be a number");
    expect(() => auditTrace(at([5, 5]))).toThrow("must end after it begins");
    expect(() => auditTrace([{ host, startedAtMs: 0, cost: 0.5 }])).toThrow("cost must be a whole number");
    expect(() => auditTrace(at(0, 1), {}, { maxEntries: 1 })).toThrow("more than 1 entries");
    expect(() => auditTrace([], {}, { slackMs: -1 })).toThrow("slackMs must be");
  });

  it("keeps nothing of an entry that was refused, and can be asked more than once", () => {
    const audit = createTraceAudit({ default: { minDelay: "1s" } });
    audit.add({ host, startedAtMs: 0 });
    expect(() => audit.add({ host, startedAtMs: Number.POSITIVE_INFINITY })).toThrow(TypeError);
    expect(audit.report()).toMatchObject({ entries: 1, isClean: true });
    audit.add({ host, startedAtMs: 1 });
    expect(audit.report()).toMatchObject({ entries: 2, isClean: false });
    expect(auditTrace([])).toEqual({ isClean: true, entries: 0, keys: [] });
  });
});
