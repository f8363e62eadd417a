import { describe, expect, it } from "vitest";
import { parseRateLimit } from "../../../src/http/headers/index.js";
import { readCounts } from "../../../src/http/headers/values.js";

const field = "x-ms-ratelimit-remaining-resource";

describe("a field with a name before each number", () => {
  it.each([
    ["Microsoft.Compute/HighCostGet3Min;159", 159],
    ["Microsoft.Compute/HighCostGet3Min ;\t159", 159],
    ["a;b;7", 7],
    ["12", 12],
    ["a;-1", undefined],
    [";5", undefined],
    ["a;1.5", undefined],
    ["a;", undefined],
    ["a", undefined],
    [`a${" ".repeat(8_000)}b`, undefined],
    [`a${" ".repeat(8_000)};5`, 5],
    [`a${";".repeat(8_000)}5`, 5],
  ])("is read: %.40s", (text, remaining) => {
    expect(parseRateLimit({ [field]: text }, 0).remaining).toBe(remaining);
  });
});

describe("texts in quotes", () => {
  it.each([
    ['100;comment="a, b"', [100]],
    ['100;comment="a \\", b", 50', [100, 50]],
    ['100;comment="a, b', [100]],
    ['100;comment="a\\', [100]],
    ['100, "a"', undefined],
    ['100, "a', undefined],
    [`1;a=${'"\\'.repeat(4_000)}`, [1]],
    [`1;a="${'\\"'.repeat(4_000)}`, [1]],
  ])("are not looked at, closed or not: %.30s", (text, counts) => {
    expect(readCounts(text, false)?.map(({ value }) => value)).toEqual(counts);
  });
});
