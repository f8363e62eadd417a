import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { drive, perSecond } from "./drive.js";
import { scenarios } from "./scenarios.js";

const none = Number.POSITIVE_INFINITY;

describe("adaptive", () => {
  it.each(scenarios)("$name", async ({ limits, site, bands, badMost = none, latencyMostMs = none }) => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { adaptive: true, ...limits } }, { clock });
    const seconds = Math.max(...bands.map(({ toS }) => toS));
    const [driven] = await drive(limiter, clock, { host: "a.example", site: site(), seconds });
    const { startsS, latenciesMs, badCount } = driven;
    const measured = bands.map(({ fromS, toS }) => ({ fromS, toS, rate: perSecond(startsS, fromS, toS) }));
    const lastMs = latenciesMs.filter((_, index) => startsS[index] >= bands[bands.length - 1].fromS);
    const meanMs = lastMs.reduce((sum, ms) => sum + ms, 0) / lastMs.length;
    // The numbers behind docs/decisions/0004-adaptive.md.
    if (process.env.SHOW_BANDS !== undefined) console.info(JSON.stringify({ measured, badCount, meanMs }));
    const outside = measured.filter(({ rate }, index) => rate < bands[index].least || rate > bands[index].most);
    expect(outside).toEqual([]);
    expect(badCount).toBeLessThanOrEqual(badMost);
    expect(meanMs).toBeLessThanOrEqual(latencyMostMs);
  });
});
