import { describe, expect, it } from "vitest";
import { bytesText, percentText, rateText } from "../../src/view/amounts.js";
import { barText } from "../../src/view/bar.js";
import { RateMeter } from "../../src/view/rateMeter.js";
import { plainLook } from "./looks.js";

describe("bytesText", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1 kB"],
    [12_345, "12.3 kB"],
    [99_960, "100 kB"],
    [999_600, "1 MB"],
    [4_500_000_000, "4.5 GB"],
    [3e15, "3,000 TB"],
  ])("writes %i as %s", (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });
});

describe("rateText", () => {
  it.each([
    [0, "0/s"],
    [Number.NaN, "0/s"],
    [1_234.4, "1,234/s"],
    [12.34, "12.3/s"],
    [1.984, "1.98/s"],
    [0.1, "0.1/s"],
    [1 / 20, "3/min"],
    [1 / 3_600, "1/h"],
  ])("writes %d as %s", (perSec, text) => {
    expect(rateText(perSec)).toBe(text);
  });
});

describe("percentText", () => {
  it("is 100 only when all is done", () => {
    expect(percentText(9_999, 10_000)).toBe("99%");
    expect(percentText(10_000, 10_000)).toBe("100%");
    expect(percentText(0, 0)).toBe("100%");
  });
});

describe("barText", () => {
  const bar = (total: number, done: number, failed: number): string =>
    barText({ total, done, failed }, 10, plainLook(80));

  it("is full only when all is done", () => {
    expect(bar(1_000, 999, 0)).toBe("█████████░");
    expect(bar(1_000, 1_000, 0)).toBe("██████████");
    expect(bar(0, 0, 0)).toBe("██████████");
  });

  it("shows what went wrong as soon as something is done", () => {
    expect(bar(1_000, 500, 1)).toBe("████▒░░░░░");
    expect(bar(10, 4, 4)).toBe("▒▒▒▒░░░░░░");
    expect(bar(10, 20, 0)).toBe("██████████");
  });
});

describe("RateMeter", () => {
  it("tells the growth over the last five seconds, or since the first look", () => {
    const meter = new RateMeter();
    expect(meter.look(0, 7)).toBe(0);
    expect(meter.look(1_000, 17)).toBe(10);
    for (let atMs = 2_000; atMs <= 10_000; atMs += 1_000) meter.look(atMs, 17);
    expect(meter.look(11_000, 17)).toBe(0);
    expect(meter.look(12_000, 22)).toBe(1);
  });

  it("remembers no more than its span, however often it is looked at", () => {
    const meter = new RateMeter();
    for (let atMs = 0; atMs <= 60_000; atMs += 1) meter.look(atMs, atMs);
    expect(meter.look(60_001, 60_001)).toBeCloseTo(1_000, 6);
  });
});
