import { describe, expect, it } from "vitest";
import { UsageError } from "../../src/errors.js";
import { countOption, durationOption } from "../../src/policy/optionValues.js";

const bounds = { least: 0, most: 365 * 86_400_000 };

describe("durations on the command line", () => {
  it.each([
    ["0", 0],
    ["250ms", 250],
    ["1.5s", 1_500],
    ["1.5 s", 1_500],
    ["2m", 120_000],
    ["2min", 120_000],
    ["2h", 7_200_000],
    ["365d", 31_536_000_000],
    [" 5s ", 5_000],
  ])("reads %j as a policy does", (text, ms) => {
    expect(durationOption("--wait", text, bounds)).toBe(ms);
  });

  it.each(["", "s", "-1s", "1 000ms", "1e3ms", "soon", "5sec", "366d", "Infinity"])("refuses %j", (text) => {
    expect(() => durationOption("--wait", text, bounds)).toThrow(UsageError);
  });

  it("says its bounds as one writes them, and what a bare number lacks", () => {
    expect(() => durationOption("--wait", "60", bounds)).toThrow(
      '--wait takes a duration from 0 to 365d, such as 30s, 10min or 2h; got "60". Add the unit: 60ms or 60s.',
    );
    expect(() => durationOption("--lease", "0", { least: 1_000, most: 3_600_000 })).toThrow(
      /^--lease takes a duration from 1s to 1h, such as 30s, 10min or 2h; got "0"$/,
    );
    expect(() => durationOption("--lease", "1ms", { least: 1_500, most: 90_000 })).toThrow(/from 1500ms to 90s/);
  });
});

describe("counts on the command line", () => {
  it("takes whole numbers within its bounds", () => {
    expect(countOption("--rows", "10", { least: 1, most: 10 })).toBe(10);
    for (const text of ["0", "11", "1.0", "1e1", "", "-1", "9".repeat(400)]) {
      expect(() => countOption("--rows", text, { least: 1, most: 10 })).toThrow(UsageError);
    }
    expect(() => countOption("--rows", "x", { least: 1, most: 10_000 })).toThrow(
      '--rows takes a whole number from 1 to 10,000; got "x"',
    );
  });
});
