import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { COUNTERS, GAUGES, HISTOGRAMS, WHOLE } from "../../../src/observe/metrics.js";
import { instrument } from "../../../src/opentelemetry.js";
import { prometheusMetrics } from "../../../src/prometheus.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { failure, many, track } from "../../verbs/support.js";
import { scrape, sumOf } from "./scrape.js";

/** The real SDK, with what it exported. */
function sdk() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  return {
    meter: provider.getMeter("politely"),
    otherMeter: provider.getMeter("politely.other"),
    collect: async (): Promise<ResourceMetrics> => {
      exporter.reset();
      await reader.forceFlush();
      return exporter.getMetrics()[0];
    },
    stop: () => provider.shutdown(),
  };
}

function pointsOf(metrics: ResourceMetrics, name: string): DataPoint<number>[] {
  const found = metrics.scopeMetrics
    .flatMap((scope) => scope.metrics)
    .find(({ descriptor }) => descriptor.name === name);
  return (found?.dataPoints ?? []) as DataPoint<number>[];
}

function sum(metrics: ResourceMetrics, name: string, attributes: Record<string, string> = {}): number {
  return pointsOf(metrics, name)
    .filter((point) => Object.entries(attributes).every(([key, value]) => point.attributes[key] === value))
    .reduce((total, { value }) => total + value, 0);
}

function histogram(metrics: ResourceMetrics, name: string, host: string): Histogram | undefined {
  const point = pointsOf(metrics, name).find(({ attributes }) => attributes["server.address"] === host);
  return point?.value as unknown as Histogram | undefined;
}

describe("instrument", () => {
  it("measures with the real SDK what a scrape of Prometheus counts", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { rate: "1/2s", burst: 2 } }, { clock });
    const { meter, collect, stop } = sdk();
    instrument(limiter, { meter });
    const scraped = prometheusMetrics(limiter);
    void many(4, () => track(limiter.run("a.org", () => ({ status: 429 }))));
    await failure(limiter.acquire("a.org", { maxWait: 1 }));
    await clock.advance(1_000);
    const abort = new AbortController();
    void track(limiter.acquire("a.org", { signal: abort.signal }));
    abort.abort();
    await clock.advance(500);
    const metrics = await collect();
    const samples = await scrape(scraped);
    for (const { opentelemetry, prometheus } of Object.values(COUNTERS)) {
      expect([opentelemetry, sum(metrics, opentelemetry)]).toEqual([opentelemetry, sumOf(samples, prometheus)]);
    }
    for (const { opentelemetry, prometheus } of Object.values(GAUGES)) {
      expect([opentelemetry, sum(metrics, opentelemetry)]).toEqual([opentelemetry, sumOf(samples, prometheus)]);
    }
    for (const { opentelemetry, prometheus } of Object.values(HISTOGRAMS)) {
      const value = histogram(metrics, opentelemetry, "a.org");
      expect([opentelemetry, value?.count]).toEqual([opentelemetry, sumOf(samples, `${prometheus}_count`)]);
      expect(value?.sum).toBeCloseTo(sumOf(samples, `${prometheus}_sum`), 6);
    }
    expect(sum(metrics, "politely.throttled")).toBeGreaterThan(0);
    expect(sum(metrics, "politely.refused", { "error.type": "POLITELY_DEADLINE" })).toBe(1);
    expect(sum(metrics, WHOLE.hosts.opentelemetry)).toBe(1);
    await stop();
  });

  it("uses the bounds at which the alarms are", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: "2s" } }, { clock });
    const { meter, collect, stop } = sdk();
    instrument(limiter, { meter });
    void many(3, () => track(limiter.run("a.org", () => undefined)));
    await clock.advance(4_000);
    const metrics = await collect();
    const boundaries = (name: string): number[] | undefined => histogram(metrics, name, "a.org")?.buckets.boundaries;
    expect(boundaries("politely.wait.duration")).toContain(5);
    expect(boundaries("politely.start.interval")).toEqual(expect.arrayContaining([1.5, 3]));
    expect(boundaries("politely.start.concurrency")).toContain(1);
    await stop();
  });

  it("keeps sums right and names bounded when hosts move to other", async () => {
    const limiter = politely({ default: { cooldown: 1 } }, { clock: new VirtualClock() });
    const { meter, collect, stop } = sdk();
    instrument(limiter, { meter, maxHosts: 2 });
    let total = 0;
    let before = new Map<string, number>();
    for (let round = 0; round < 8; round++) {
      const times = 15 * 2 ** round;
      for (let index = 0; index < times; index++) limiter.record(`h${round}.org`, "rate_limited");
      // The host before may have got a label meanwhile.
      if (round > 0) limiter.record(`h${round - 1}.org`, "rate_limited");
      total += times + (round > 0 ? 1 : 0);
      const metrics = await collect();
      expect(sum(metrics, "politely.starts")).toBe(total);
      expect(sum(metrics, "politely.throttled")).toBe(total);
      const now = new Map(
        pointsOf(metrics, "politely.starts").map(({ attributes, value }) => [
          String(attributes["server.address"]),
          value,
        ]),
      );
      for (const [host, value] of before) expect(now.get(host)).toBeGreaterThanOrEqual(value);
      before = now;
    }
    expect(before.size).toBeGreaterThan(3);
    expect(before.size).toBeLessThanOrEqual(1 + 2 * 11);
    await stop();
  });

  it("measures nothing any more once it is closed", async () => {
    const limiter = politely({ default: {} }, { clock: new VirtualClock() });
    const { meter, collect, stop } = sdk();
    const instrumentation = instrument(limiter, { meter });
    (await limiter.acquire("a.org")).release();
    instrumentation.close();
    (await limiter.acquire("a.org")).release();
    const metrics = await collect();
    expect(sum(metrics, "politely.starts")).toBe(1);
    expect(pointsOf(metrics, "politely.hosts")).toEqual([]);
    await stop();
  });

  it("refuses what is no meter", () => {
    const limiter = politely({}, { clock: new VirtualClock() });
    expect(() => instrument(limiter, {} as { meter: ReturnType<typeof sdk>["meter"] })).toThrow(TypeError);
  });

  it("keeps limiters apart that have a meter each", async () => {
    const { meter, otherMeter, collect, stop } = sdk();
    const [first, second] = [politely({ default: { concurrency: 9 } }), politely({ default: { concurrency: 9 } })];
    instrument(first, { meter });
    instrument(second, { meter: otherMeter });
    for (let count = 0; count < 3; count++) await first.acquire("a.org");
    await second.acquire("a.org");
    const { scopeMetrics } = await collect();
    const inFlight = scopeMetrics.map(({ scope, metrics }) => {
      const found = metrics.find(({ descriptor }) => descriptor.name === GAUGES.inFlight.opentelemetry);
      const point = found?.dataPoints.find(({ attributes }) => attributes["server.address"] === "a.org");
      return [scope.name, point?.value];
    });
    expect(inFlight).toEqual([
      ["politely", 3],
      ["politely.other", 1],
    ]);
    await stop();
  });
});
