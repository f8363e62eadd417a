import { describe, expect, it } from "vitest";
import { type Headroom, headroomAfter } from "../../src/core/headroom.js";

const SECOND = 1_000_000;

/** What is known after an answer that says so many remain for so long. */
function after(
  known: Headroom | undefined,
  said: { readonly remaining: number; readonly resetUs: number },
  heard: { readonly startedUs: number; readonly nowUs: number; readonly laterUnits?: number },
): Headroom {
  return headroomAfter(known, { because: `${said.remaining} left`, ...said }, heard, heard.laterUnits ?? 0);
}

describe("what is left of a site's budget", () => {
  it("is spread until the reset", () => {
    expect(after(undefined, { remaining: 10, resetUs: 100 * SECOND }, { startedUs: 0, nowUs: 5 })).toMatchObject({
      gapUs: 10 * SECOND,
      holdUntilUs: Number.NEGATIVE_INFINITY,
      untilUs: 100 * SECOND + 5,
      because: "10 left",
    });
  });

  it("is spread with the gap rounded up, so that it lasts", () => {
    expect(after(undefined, { remaining: 3, resetUs: 10 }, { startedUs: 0, nowUs: 0 }).gapUs).toBe(4);
  });

  it("holds until the reset when nothing remains", () => {
    const headroom = after(undefined, { remaining: 0, resetUs: 7 * SECOND }, { startedUs: 0, nowUs: SECOND });
    expect(headroom).toMatchObject({ gapUs: 0, holdUntilUs: 8 * SECOND, untilUs: 8 * SECOND });
  });

  it("counts requests under way as used, since the site may not have seen them yet", () => {
    const said = { remaining: 4, resetUs: 12 * SECOND };
    expect(after(undefined, said, { startedUs: 0, nowUs: 0, laterUnits: 1 }).gapUs).toBe(4 * SECOND);
    expect(after(undefined, said, { startedUs: 0, nowUs: 0, laterUnits: 4 }).holdUntilUs).toBe(12 * SECOND);
    expect(after(undefined, said, { startedUs: 0, nowUs: 0, laterUnits: 9 }).holdUntilUs).toBe(12 * SECOND);
  });

  it("follows the request that started last", () => {
    const known = after(undefined, { remaining: 1, resetUs: 10 * SECOND }, { startedUs: 100, nowUs: 200 });
    const next = after(known, { remaining: 50, resetUs: 60 * SECOND }, { startedUs: 150, nowUs: 300 });
    expect(next).toMatchObject({ gapUs: 1_200_000, startedUs: 150, untilUs: 60 * SECOND + 300, because: "50 left" });
  });

  it("is never widened by an answer that comes late", () => {
    const known = after(undefined, { remaining: 2, resetUs: 10 * SECOND }, { startedUs: 100, nowUs: 200 });
    const late = after(known, { remaining: 9, resetUs: 9 * SECOND }, { startedUs: 50, nowUs: 300 });
    expect(late).toBe(known);
  });

  it("counts those under way once: a late answer does not subtract what the newer one knows", () => {
    const known = after(undefined, { remaining: 30, resetUs: 3_600 * SECOND }, { startedUs: 100, nowUs: 200 });
    expect(
      after(known, { remaining: 35, resetUs: 3_600 * SECOND }, { startedUs: 50, nowUs: 300, laterUnits: 40 }),
    ).toBe(known);
  });

  it("is tightened by an answer that comes late and knows of less", () => {
    const known = after(undefined, { remaining: 2, resetUs: 10 * SECOND }, { startedUs: 100, nowUs: 200 });
    const late = after(known, { remaining: 0, resetUs: 10 * SECOND }, { startedUs: 50, nowUs: 300 });
    expect(late).toMatchObject({ holdUntilUs: 10 * SECOND + 300, startedUs: 100, because: "0 left" });
  });

  it("forgets what was known once its reset has passed, whatever comes late", () => {
    const known: Headroom = { gapUs: SECOND, holdUntilUs: 500, untilUs: 500, startedUs: 400, because: "" };
    const next = after(known, { remaining: 5, resetUs: 100 }, { startedUs: 300, nowUs: 600 });
    expect(next).toEqual({
      gapUs: 20,
      holdUntilUs: Number.NEGATIVE_INFINITY,
      untilUs: 700,
      startedUs: 300,
      because: "5 left",
    });
  });
});
