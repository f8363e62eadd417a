import { describe, expect, it } from "vitest";
import { auditTrace, type TraceEntry } from "../../../src/testing/index.js";

const host = "a.example";
const free = { default: { minDelay: 0 } };
const asks = (more: Partial<TraceEntry> = {}): TraceEntry => ({
  host,
  startedAtMs: 0,
  endedAtMs: 100,
  status: 429,
  retryAfterMs: 2_000,
  ...more,
});

function ignored(...trace: readonly TraceEntry[]): string[] {
  return auditTrace(trace, free).keys[0].ignoredRetryAfters.map(({ says }) => says);
}

describe("ignored Retry-Afters", () => {
  it.each([
    [50, []],
    [100, []],
    [101, ["started 1.999 s before a Retry-After of 2 s was over"]],
    [2_099.999, ["started 1 µs before a Retry-After of 2 s was over"]],
    [2_100, []],
  ])("judges a start at %d ms", (startedAtMs, says) => {
    expect(ignored({ host, startedAtMs }, asks())).toEqual(says);
  });

  it("names both requests, and counts all while it names the worst", () => {
    const trace = [
      asks({ line: 7 }),
      ...Array.from({ length: 30 }, (_, index) => ({ host, startedAtMs: 200 + index })),
    ];
    const { ignoredCount, ignoredRetryAfters, isClean } = auditTrace(trace, free, { maxProof: 4 }).keys[0];
    expect([ignoredCount, ignoredRetryAfters.length, isClean]).toEqual([30, 4, false]);
    expect(ignoredRetryAfters[0]).toMatchObject({ asked: { line: 7 }, start: { startedAtMs: 200 }, earlyMs: 1_900 });
  });

  it("holds one host and no other", () => {
    const { keys } = auditTrace([asks(), { host: "b.example", startedAtMs: 500 }], {
      ...free,
      global: { window: "9/s" },
    });
    expect(keys.map(({ ignoredCount }) => ignoredCount)).toEqual([0, 0, 0]);
  });

  it("goes by the answer that asks to stay away longest", () => {
    const longer = asks({ startedAtMs: 10, endedAtMs: 110, retryAfterMs: 5_000 });
    const later = asks({ startedAtMs: 20, endedAtMs: 120, retryAfterMs: 1_000 });
    expect(ignored(longer, later, { host, startedAtMs: 4_110 })).toEqual([
      "started 1 s before a Retry-After of 5 s was over",
    ]);
  });

  it.each([200, 202, 301, 404])("does not take a Retry-After of a %d for a request to stay away", (status) => {
    expect(ignored(asks({ status }), { host, startedAtMs: 500 })).toEqual([]);
  });

  it.each(["0", "-5", "soon", "", "1e3", "Wed, 21 Oct 2015 07:28:00 GMT"])("takes %j for nothing", (retryAfter) => {
    const wallAtZeroMs = Date.UTC(2026, 0, 1);
    const trace = [asks({ retryAfterMs: undefined, retryAfter }), { host, startedAtMs: 500 }];
    expect(auditTrace(trace, free, { wallAtZeroMs }).isClean).toBe(true);
  });

  it("reads seconds and dates", () => {
    const wallAtZeroMs = Date.UTC(2026, 0, 1);
    for (const retryAfter of ["2", "1.9", "Thu, 01 Jan 2026 00:00:02 GMT"]) {
      const trace = (startedAtMs: number): TraceEntry[] => [
        asks({ retryAfterMs: undefined, retryAfter }),
        { host, startedAtMs },
      ];
      expect(auditTrace(trace(1_999), free, { wallAtZeroMs }).isClean).toBe(false);
      expect(auditTrace(trace(2_100), free, { wallAtZeroMs }).isClean).toBe(true);
    }
  });

  it("lets an answer whose time is not known come up to a second later", () => {
    const unknown = asks({ endedAtMs: undefined });
    expect(ignored(unknown, { host, startedAtMs: 1_000 })).toEqual([]);
    expect(ignored(unknown, { host, startedAtMs: 1_001 })).toHaveLength(1);
    expect(ignored(unknown, { host, startedAtMs: 2_000 })).toEqual([]);
  });

  it("accuses intervals only if every choice of times is too early", () => {
    const answeredAtMs = [0, 1_000] as const;
    expect(ignored(asks({ answeredAtMs }), { host, startedAtMs: [0, 1_000] })).toEqual([]);
    expect(ignored(asks({ answeredAtMs }), { host, startedAtMs: [1_000, 2_000] })).toEqual([
      "started at least 1 µs before a Retry-After of 2 s was over",
    ]);
    expect(ignored(asks({ answeredAtMs }), { host, startedAtMs: [2_000, 3_000] })).toEqual([]);
  });

  it("judges nothing where the policy turns the limits off", () => {
    expect(auditTrace([asks(), { host, startedAtMs: 500 }], { default: { enabled: false } }).isClean).toBe(true);
  });
});
