import { expect, it } from "vitest";
import { closestName } from "../../src/policy/closestName.js";

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
