import { describe, expect, it } from "vitest";
import { countText, durationText } from "../../src/words.js";

describe("words", () => {
  it.each([
    [0, "0 ms"],
    [0.4, "0 ms"],
    [850, "850 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1_000, "1 s"],
    [4_240, "4.2 s"],
    [9_949, "9.9 s"],
    [9_950, "10 s"],
    [59_499, "59 s"],
    [59_600, "1 min"],
    [200_000, "3 min 20 s"],
    [3_599_600, "1 h"],
    [18_720_000, "5 h 12 min"],
    [86_400_000 - 20_000, "1 d"],
    [12 * 86_400_000 + 3 * 3_600_000, "12 d 3 h"],
    [500 * 86_400_000, "500 d"],
    [3 * 365.2425 * 86_400_000, "about 3 years"],
    [2_738 * 365.2425 * 86_400_000, "about 2,738 years"],
    [1e20, "more than a million years"],
    [Number.POSITIVE_INFINITY, "for ever"],
    [-200_000, "-3 min 20 s"],
    [Number.NaN, "unknown"],
  ])("say %d ms as %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  it("never say sixty seconds or sixty minutes", () => {
    for (let ms = 0; ms < 8_000_000; ms += 137) expect(durationText(ms)).not.toMatch(/\b60 (s|min)\b/);
  });

  it("put commas between thousands", () => {
    expect([0, 999, 1_000, 1_000_000].map(countText)).toEqual(["0", "999", "1,000", "1,000,000"]);
  });
});
