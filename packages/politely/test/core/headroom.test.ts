import { describe, expect, it } from "vitest";
import { type Headroom, headroomAfter } from "../../src/core/headroom.js";

const SECOND = 1_000_000;

function heard(startedUs: number, nowUs: number, laterUnits = 0) {
  return { startedUs, nowUs, laterUnits };
}

describe("what is left of a site's budget", () => {
  it("is spread until the reset", () => {
    expect(headroomAfter(undefined, { remaining: 10, resetUs: 100 * SECOND }, heard(0, 5))).toMatchObject({
      gapUs: 10 * SECOND,
      holdUntilUs: Number.NEGATIVE_INFINITY,
      untilUs: 100 * SECOND + 5,
    });
  });

  it("is spread with the gap rounded up, so that it lasts", () => {
    expect(headroomAfter(undefined, { remaining: 3, resetUs: 10 }, heard(0, 0)).gapUs).toBe(4);
  });

  it("holds until the reset when nothing remains", () => {
    const headroom = headroomAfter(undefined, { remaining: 0, resetUs: 7 * SECOND }, heard(0, SECOND));
    expect(headroom).toMatchObject({ gapUs: 0, holdUntilUs: 8 * SECOND, untilUs: 8 * SECOND });
  });

  it("counts requests under way as used, since the site may not have seen them yet", () => {
    const said = { remaining: 4, resetUs: 12 * SECOND };
    expect(headroomAfter(undefined, said, heard(0, 0, 1)).gapUs).toBe(4 * SECOND);
    expect(headroomAfter(undefined, said, heard(0, 0, 4)).holdUntilUs).toBe(12 * SECOND);
    expect(headroomAfter(undefined, said, heard(0, 0, 9)).holdUntilUs).toBe(12 * SECOND);
  });

  it("follows the request that started last", () => {
    const known = headroomAfter(undefined, { remaining: 1, resetUs: 10 * SECOND }, heard(100, 200));
    const next = headroomAfter(known, { remaining: 50, resetUs: 60 * SECOND }, heard(150, 300));
    expect(next).toMatchObject({ gapUs: 1_200_000, startedUs: 150, untilUs: 60 * SECOND + 300 });
  });

  it("is never widened by an answer that comes late", () => {
    const known = headroomAfter(undefined, { remaining: 2, resetUs: 10 * SECOND }, heard(100, 200));
    const late = headroomAfter(known, { remaining: 9, resetUs: 9 * SECOND }, heard(50, 300));
    expect(late).toBe(known);
  });

  it("counts those under way once: a late answer does not subtract what the newer one knows", () => {
    const known = headroomAfter(undefined, { remaining: 30, resetUs: 3_600 * SECOND }, heard(100, 200));
    expect(headroomAfter(known, { remaining: 35, resetUs: 3_600 * SECOND }, heard(50, 300, 40))).toBe(known);
  });

  it("is tightened by an answer that comes late and knows of less", () => {
    const known = headroomAfter(undefined, { remaining: 2, resetUs: 10 * SECOND }, heard(100, 200));
    const late = headroomAfter(known, { remaining: 0, resetUs: 10 * SECOND }, heard(50, 300));
    expect(late).toMatchObject({ holdUntilUs: 10 * SECOND + 300, startedUs: 100 });
  });

  it("forgets what was known once its reset has passed, whatever comes late", () => {
    const known: Headroom = { gapUs: SECOND, holdUntilUs: 500, untilUs: 500, startedUs: 400 };
    const next = headroomAfter(known, { remaining: 5, resetUs: 100 }, heard(300, 600));
    expect(next).toEqual({ gapUs: 20, holdUntilUs: Number.NEGATIVE_INFINITY, untilUs: 700, startedUs: 300 });
  });
});
