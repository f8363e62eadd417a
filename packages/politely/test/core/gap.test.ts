import { describe, expect, it } from "vitest";
import { gapReadyAt } from "../../src/shared/gap.js";

describe("a gap", () => {
  it.each([
    {
      title: "lets the first start go at once",
      lastUs: Number.NEGATIVE_INFINITY,
      gapUs: 500,
      atUs: Number.NEGATIVE_INFINITY,
    },
    { title: "keeps the next start its length away", lastUs: 1_000, gapUs: 500, atUs: 1_500 },
    { title: "counts from instant 0 like from any other", lastUs: 0, gapUs: 500, atUs: 500 },
    { title: "of nothing keeps nothing away", lastUs: 1_000, gapUs: 0, atUs: 1_000 },
  ])("$title", ({ lastUs, gapUs, atUs }) => {
    expect(gapReadyAt(lastUs, gapUs)).toBe(atUs);
  });
});
