import { describe, expect, it } from "vitest";
import type { LogRecord } from "../server.js";
import { stopsIn } from "./measure.js";

/** A log of one host, by time of arrival and status. */
function logOf(...arrivals: readonly (readonly [number, number])[]): LogRecord[] {
  return arrivals.map(([atMs, status]) => ({ atMs, status, host: "127.0.0.2", path: "/", userAgent: "" }));
}

describe("stopsIn", () => {
  it("finds no stop where nothing was refused", () => {
    expect(stopsIn(logOf([0, 200], [1, 200]), 2_000)).toEqual([]);
  });

  it("tells what came before Retry-After had passed, and what came next", () => {
    const log = logOf([0, 200], [5, 429], [8, 429], [60, 200], [2_010, 200]);
    expect(stopsIn(log, 2_000)).toEqual([{ earlyMs: [3, 55], next: { afterMs: 5, status: 200 } }]);
  });

  it("begins anew with a 429 after Retry-After", () => {
    const log = logOf([0, 429], [1_000, 429], [2_500, 429], [3_499, 200], [3_500, 200]);
    expect(stopsIn(log, 1_000)).toEqual([
      { earlyMs: [], next: { afterMs: 0, status: 429 } },
      { earlyMs: [], next: { afterMs: 500, status: 429 } },
      { earlyMs: [], next: { afterMs: -1, status: 200 } },
    ]);
  });

  it("has nothing next where nothing came any more", () => {
    expect(stopsIn(logOf([0, 429], [997, 200]), 1_000)).toEqual([{ earlyMs: [997], next: undefined }]);
  });
});
