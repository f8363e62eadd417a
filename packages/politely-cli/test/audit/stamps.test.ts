import { describe, expect, it } from "vitest";
import {
  accessStampMs,
  between,
  endInstant,
  epochInstant,
  isoInstant,
  millisecondsInstant,
} from "../../src/audit/stamps.js";

const ten = Date.UTC(2026, 0, 31, 10);

describe("stamps", () => {
  it.each([
    ["2026-01-31T10:00:00Z", [ten, ten + 1_000]],
    ["2026-01-31 10:00:00", [ten, ten + 1_000]],
    ["2026-01-31T11:00:00+01:00", [ten, ten + 1_000]],
    ["2026-01-31T05:00:00-0500", [ten, ten + 1_000]],
    ["2026-01-31T10:00Z", [ten, ten + 60_000]],
    ["2026-01-31T10:00:00.5Z", [ten + 500, ten + 600]],
    ["2026-01-31T10:00:00,123Z", [ten + 123, ten + 124]],
    ["2026-01-31T10:00:00.123456Z", ten + 123.456],
    ["2026-01-31T10:00.5Z", undefined],
    ["2026-02-31T10:00:00", undefined],
    ["yesterday", undefined],
    ["", undefined],
  ])("reads %j as the time it leaves open", (text, instant) => {
    expect(isoInstant(text)).toEqual(instant);
  });

  it("tells the unit of a number since 1970 by its size", () => {
    expect(epochInstant(ten / 1000)).toEqual([ten, ten + 1_000]);
    expect(epochInstant(ten / 1000 + 0.25)).toEqual([ten + 250, ten + 260]);
    expect(epochInstant(ten)).toEqual([ten, ten + 1]);
    expect(epochInstant(ten * 1000 + 7)).toBeCloseTo(ten + 0.007, 3);
    expect(epochInstant(ten * 1e6)).toBe(ten);
    expect(epochInstant(-1)).toBeUndefined();
    expect(millisecondsInstant(1_234.567)).toBe(1_234.567);
  });

  it("reads the stamp of an access log with its zone", () => {
    expect(accessStampMs("31/Jan/2026:11:00:00 +0100")).toBe(ten);
    expect(accessStampMs("31/Jan/2026:04:30:00 -0530")).toBe(ten);
    for (const text of ["31/Foo/2026:11:00:00 +0100", "99/Jan/2026:11:00:00 +0100", "31/Jan/2026 11:00:00"]) {
      expect(accessStampMs(text)).toBeNaN();
    }
  });

  it("leaves a millisecond either way to a length that was rounded, and no end before its start", () => {
    expect(endInstant([0, 1], 20)).toEqual([19, 22]);
    expect(endInstant(5, 0)).toEqual([5, 6.001]);
    expect(between([0, 1], [19, 22])).toEqual([0, 22]);
  });
});
