import { describe, expect, it } from "vitest";
import { quotaUsed } from "../../src/shared/quota.js";

describe("a calendar budget", () => {
  it.each([
    { title: "counts what was spent in this period", index: 7, used: 3, nowIndex: 7, left: 3 },
    { title: "forgets it in the next", index: 7, used: 3, nowIndex: 8, left: 0 },
    { title: "forgets it in any later one", index: 7, used: 3, nowIndex: 700, left: 0 },
    { title: "stays in its period when the wall clock is set back", index: 7, used: 3, nowIndex: 6, left: 3 },
    { title: "has spent nothing before its first period", index: 0, used: 0, nowIndex: 0, left: 0 },
  ])("$title", ({ index, used, nowIndex, left }) => {
    expect(quotaUsed(index, used, nowIndex)).toBe(left);
  });
});
