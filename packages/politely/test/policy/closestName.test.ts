import { expect, it } from "vitest";
import { closeNames, closestName } from "../../src/policy/closestName.js";

it.each([
  ["rat", "rate"],
  ["RATE", "rate"],
  ["min_delay", "minDelay"],
  ["minDelya", "minDelay"],
  ["concurency", "concurrency"],
  ["x", undefined],
  ["speed", undefined],
  ["", undefined],
  ["rate".repeat(1_000), undefined],
])("takes %j for %j", (text, name) => {
  expect(closestName(text, ["rate", "minDelay", "window", "concurrency"])).toBe(name);
});

it.each([
  ["githbu-rest", ["github-rest"]],
  ["github", ["github-rest", "github-search"]],
  ["rest", ["github-rest"]],
  ["aaaa", ["aaab", "aaac", "aaad"]],
  ["gi", []],
  ["zebra", []],
])("offers for %j the names %j", (text, names) => {
  expect(closeNames(text, ["github-rest", "github-search", "aaab", "aaac", "aaad", "aaae"])).toEqual(names);
});
