import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../laws/seeded.js";
import type { LogRecord } from "./server.js";
import { summarise } from "./summarise.js";

function record(atMs: number, status = 200, host = "127.0.0.2"): LogRecord {
  return { atMs, status, host, path: "/", userAgent: "" };
}

describe("summarise", () => {
  it("has nothing to say about an empty log", () => {
    expect(summarise([])).toEqual([]);
  });

  it("counts each host by itself", () => {
    const log = [record(0), record(10, 429, "127.0.0.3"), record(400), record(20, 200, "127.0.0.3")];
    expect(summarise(log)).toEqual([
      {
        host: "127.0.0.2",
        requestCount: 2,
        refusedCount: 0,
        mostInAnySecond: 2,
        shortestGapMs: 400,
        tooSoonCount: 0,
      },
      {
        host: "127.0.0.3",
        requestCount: 2,
        refusedCount: 1,
        mostInAnySecond: 2,
        shortestGapMs: 10,
        tooSoonCount: 1,
      },
    ]);
  });

  it("does not see two requests exactly a second apart in one second", () => {
    expect(summarise([record(0), record(1_000)])[0]?.mostInAnySecond).toBe(1);
    expect(summarise([record(0), record(999.999)])[0]?.mostInAnySecond).toBe(2);
  });

  it("has no shortest gap for a single request", () => {
    expect(summarise([record(5)])[0]?.shortestGapMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("counts what comes after the first 429 until its Retry-After has passed, and no longer", () => {
    const log = [record(0), record(100, 429), record(101), record(2_099, 429), record(2_100), record(3_000)];
    expect(summarise(log)[0]).toMatchObject({ refusedCount: 2, tooSoonCount: 2 });
    expect(summarise(log, { retryAfterMs: 500 })[0]?.tooSoonCount).toBe(1);
    expect(summarise(log, { retryAfterMs: 5_000 })[0]?.tooSoonCount).toBe(4);
  });

  it("agrees with a slow count, whatever the order of the lines", () => {
    const logs = fc.array(fc.tuple(fc.integer({ min: 0, max: 5_000 }), fc.constantFrom(200, 200, 429)), {
      minLength: 1,
      maxLength: 40,
    });
    fc.assert(
      fc.property(logs, (lines) => {
        const log = lines.map(([atMs, status]) => record(atMs, status));
        const times = log.map(({ atMs }) => atMs);
        const gaps = times.flatMap((a, i) => times.filter((_, k) => k !== i).map((b) => Math.abs(a - b)));
        expect(summarise(log)[0]).toMatchObject({
          requestCount: log.length,
          refusedCount: log.filter(({ status }) => status === 429).length,
          mostInAnySecond: Math.max(...times.map((a) => times.filter((b) => b >= a && b < a + 1_000).length)),
          shortestGapMs: Math.min(Number.POSITIVE_INFINITY, ...gaps),
        });
      }),
      seeded(300),
    );
  });
});
