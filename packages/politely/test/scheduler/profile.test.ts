import { describe, expect, it } from "vitest";
import { compileRule } from "../../src/policy/compileRule.js";
import type { Limits } from "../../src/policy/types.js";
import { Profiles, profileOf } from "../../src/scheduler/profile.js";

const noBound = Number.POSITIVE_INFINITY;

describe("a profile", () => {
  it.each<{ title: string; limits: Limits; isSimple: boolean; isFollowed: boolean }>([
    { title: "nothing at all", limits: {}, isSimple: true, isFollowed: false },
    { title: "gap and bucket", limits: { minDelay: "1s", rate: "2/s", burst: 3 }, isSimple: true, isFollowed: false },
    { title: "a window", limits: { window: "5/min" }, isSimple: false, isFollowed: false },
    { title: "a quota", limits: { quota: { count: 5, per: "day" } }, isSimple: false, isFollowed: false },
    { title: "concurrency", limits: { concurrency: 2 }, isSimple: false, isFollowed: true },
    {
      title: "counting from the answer",
      limits: { minDelay: 5, countFrom: "answer" },
      isSimple: false,
      isFollowed: true,
    },
    { title: "limits turned off", limits: { enabled: false, concurrency: 2 }, isSimple: true, isFollowed: false },
  ])("says whether arithmetic alone decides and whether permits are followed: $title", (row) => {
    const { isSimple, isFollowed } = profileOf(compileRule(row.limits));
    expect({ isSimple, isFollowed }).toEqual({ isSimple: row.isSimple, isFollowed: row.isFollowed });
  });

  it("knows the largest cost that each kind of limit can take", () => {
    const limits: Limits = { rate: "2/s", burst: 3, window: ["9/s", "7/min"], quota: { count: 50, per: "day" } };
    expect(profileOf(compileRule(limits))).toMatchObject({ rateMost: 3, windowMost: 7, quotaMost: 50 });
    expect(profileOf(compileRule({}))).toMatchObject({ rateMost: noBound, windowMost: noBound, quotaMost: noBound });
  });

  it("knows what a bucket may owe, in unit-microseconds", () => {
    const { owedMost, rateCount, ratePerUs } = profileOf(compileRule({ rate: "2/s", burst: 3 }));
    expect(owedMost).toBe(3 * ratePerUs);
    expect(ratePerUs / rateCount).toBe(500_000);
  });
});

describe("profiles by number", () => {
  it("give a rule the same number every time, and another rule another", () => {
    const profiles = new Profiles(profileOf);
    const [one, two] = [compileRule({ minDelay: 1 }), compileRule({ minDelay: 1 })];
    const numbers = [one, two, one, two].map((rule) => profiles.numberOf(rule));
    expect(numbers).toEqual([0, 1, 0, 1]);
    expect([profiles.at(0).rule, profiles.at(1).rule]).toEqual([one, two]);
    expect(profiles.at(1)).toBe(profiles.at(1));
  });
});
