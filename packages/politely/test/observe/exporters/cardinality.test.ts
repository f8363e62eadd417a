import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { prometheusMetrics } from "../../../src/prometheus.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { seeded } from "../../laws/seeded.js";
import { type Sample, scrape, seriesOf, sumOf } from "./scrape.js";

function hostsOf(samples: readonly Sample[]): Set<string> {
  return new Set(samples.flatMap(({ labels }) => (labels.host === undefined ? [] : [labels.host])));
}

describe("labels of hosts", () => {
  it("are at most maxHosts, and one for the others", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    const metrics = prometheusMetrics(limiter, { maxHosts: 3 });
    for (let index = 0; index < 50; index++) (await limiter.acquire(`h${index}.org`)).release();
    const samples = await scrape(metrics);
    expect(hostsOf(samples)).toEqual(new Set(["other", "h0.org", "h1.org", "h2.org"]));
    expect(sumOf(samples, "politely_starts_total", { host: "other" })).toBe(47);
  });

  it("are 200 by default", async () => {
    const limiter = politely({ default: {} }, { clock: new VirtualClock() });
    const metrics = prometheusMetrics(limiter);
    for (let index = 0; index < 250; index++) (await limiter.acquire(`h${index}.org`)).release();
    expect(hostsOf(await scrape(metrics)).size).toBe(201);
  });

  it("go to the most active hosts, and what the others had counted goes to other", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    const metrics = prometheusMetrics(limiter, { maxHosts: 2 });
    const ask = async (host: string, times: number): Promise<void> => {
      for (let index = 0; index < times; index++) (await limiter.acquire(host)).release();
    };
    await ask("first.org", 5);
    await ask("second.org", 50);
    await ask("busy.org", 40);
    const samples = await scrape(metrics);
    expect(hostsOf(samples)).toEqual(new Set(["other", "second.org", "busy.org"]));
    expect(sumOf(samples, "politely_starts_total", { host: "other" })).toBe(45);
    await ask("busy.org", 3);
    await ask("first.org", 500);
    const later = await scrape(metrics);
    expect(sumOf(later, "politely_starts_total", { host: "busy.org" })).toBe(3);
    // It has had a label, so it does not get one again: its counter would begin anew.
    expect(hostsOf(later)).toEqual(new Set(["other", "second.org", "busy.org"]));
    expect(sumOf(later, "politely_starts_total")).toBe(5 + 50 + 40 + 3 + 500);
  });

  it("change hands a bounded number of times, whatever comes", async () => {
    const limiter = politely({ default: {} }, { clock: new VirtualClock() });
    const metrics = prometheusMetrics(limiter, { maxHosts: 2 });
    const names = new Set<string>();
    for (let round = 0; round < 60; round++) {
      const times = Math.min(5_000, 12 * 2 ** round);
      for (let index = 0; index < times; index++) limiter.record(`h${round}.org`, "success");
      for (const name of hostsOf(await scrape(metrics))) names.add(name);
    }
    expect(names.size).toBeGreaterThan(3);
    expect(names.size).toBeLessThanOrEqual(1 + 2 + 2 * 10);
  });

  it("keep every sum right, and let no counter fall, over random histories", async () => {
    const step = fc.record({
      host: fc.nat({ max: 8 }),
      times: fc.integer({ min: 1, max: 40 }),
      isScraped: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 0, max: 4 }), async (steps, maxHosts) => {
        const limiter = politely({ default: { cooldown: 1 } }, { clock: new VirtualClock(), keepStats: 3 });
        const metrics = prometheusMetrics(limiter, { maxHosts });
        const before = new Map<string, number>();
        let total = 0;
        for (const { host, times, isScraped } of steps) {
          for (let index = 0; index < times; index++)
            limiter.record(`h${host}.org`, host % 2 === 0 ? "success" : "rate_limited");
          total += times;
          if (!isScraped) continue;
          const samples = await scrape(metrics);
          expect(sumOf(samples, "politely_starts_total")).toBe(total);
          expect(sumOf(samples, "politely_throttled_total")).toBe(
            limiter.stats().reduce((sum, row) => sum + row.throttledRequests, 0),
          );
          expect(hostsOf(samples).size).toBeLessThanOrEqual(maxHosts + 1);
          for (const sample of samples.filter(({ name }) => /_(total|count|bucket|sum)$/.test(name))) {
            const series = seriesOf(sample);
            if (sample.value < (before.get(series) ?? 0)) throw new Error(`${series} fell to ${sample.value}`);
            before.set(series, sample.value);
          }
        }
      }),
      seeded(100),
    );
  });
});
