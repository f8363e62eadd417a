import { describe, expect, it } from "vitest";
import { type Limiter, politely } from "../../../src/index.js";
import { type MeasuredLimiter, prometheusMetrics } from "../../../src/prometheus.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { scrape, sumOf } from "./scrape.js";

/** A limiter that does something in each turn of the event loop in which a scrape reads on, and tells how many rows it took in one turn at most. */
function interrupted(
  limiter: Limiter,
  inBetween: (turn: number) => void,
): MeasuredLimiter & { readonly mostRows: () => number } {
  let [turn, inTurn, most] = [0, 0, 0];
  const next = (): void => {
    inTurn = 0;
    inBetween(turn++);
  };
  const count = (): void => {
    if (inTurn++ === 0) setImmediate(next);
    most = Math.max(most, inTurn);
  };
  return {
    stats() {
      const rows = limiter.stats();
      for (const _ of rows) count();
      return rows;
    },
    *eachStats() {
      for (const row of limiter.eachStats()) {
        count();
        yield row;
      }
    },
    subscribe: (listener) => limiter.subscribe(listener),
    mostRows: () => most,
  };
}

describe("a scrape of many hosts", () => {
  it("reads at most 250 of them in one turn of the event loop", async () => {
    const limiter = politely({ default: {} }, { clock: new VirtualClock() });
    const watched = interrupted(limiter, () => undefined);
    const metrics = prometheusMetrics(watched);
    for (let index = 0; index < 2_000; index++) limiter.record(`h${index}.org`, "success");
    expect(sumOf(await scrape(metrics), "politely_hosts")).toBe(2_000);
    expect(watched.mostRows()).toBeGreaterThan(0);
    expect(watched.mostRows()).toBeLessThanOrEqual(250);
  });

  it("counts every 429 once, though hosts are folded away and come again while it reads", async () => {
    // An hour goes by from turn to turn, so that every 429 is forgotten and its host may be folded away.
    let hours = 0;
    const now = (): number => hours * 3_600_000;
    const clock = { now, wall: now, setTimer: () => undefined, clearTimer: () => undefined };
    const limiter = politely({ default: { cooldown: 1 } }, { clock, keepStats: 1_000 });
    const metrics = prometheusMetrics(
      interrupted(limiter, (turn) => {
        hours += 1;
        // Whoever comes pushes the longest idle out; every third of those comes again.
        for (let index = 0; index < 100; index++) {
          limiter.record(`late${turn}-${index}.org`, "success");
          if (index % 3 === 0) limiter.record(`h${index + 100 * (turn % 10)}.org`, "success");
        }
      }),
      { maxHosts: 50 },
    );
    for (let index = 0; index < 1_000; index++) limiter.record(`h${index}.org`, "rate_limited");
    for (let round = 0; round < 5; round++) {
      expect(sumOf(await scrape(metrics), "politely_throttled_total")).toBe(1_000);
    }
    expect(limiter.stats().some(({ foldedHosts = 0 }) => foldedHosts > 500)).toBe(true);
  });

  it("does not count the 429s of all others again when the statistics of one host are reset", async () => {
    const limiter = politely({ default: { cooldown: 1 } }, { clock: new VirtualClock() });
    const metrics = prometheusMetrics(limiter, { maxHosts: 2 });
    const record = (host: string, times: number): void => {
      for (let each = 0; each < times; each++) limiter.record(host, "rate_limited");
    };
    for (const host of ["a.org", "b.org", "c.org", "d.org"]) record(host, 10);
    expect(sumOf(await scrape(metrics), "politely_throttled_total")).toBe(40);
    limiter.reset("c.org", "stats");
    record("a.org", 2);
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_throttled_total", { host: "a.org" })).toBe(12);
    expect(sumOf(samples, "politely_throttled_total")).toBe(42);
    limiter.reset(undefined, "stats");
    record("b.org", 3);
    expect(sumOf(await scrape(metrics), "politely_throttled_total", { host: "b.org" })).toBe(13);
  });
});
