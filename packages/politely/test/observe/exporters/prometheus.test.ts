import { describe, expect, it } from "vitest";
import { limit, politely } from "../../../src/index.js";
import { prometheusMetrics } from "../../../src/prometheus.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { failure, many, track } from "../../verbs/support.js";
import { parseScrape, scrape, seriesOf, sumOf } from "./scrape.js";

describe("prometheusMetrics", () => {
  it("counts starts, and how long they waited in seconds", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: "2s" } }, { clock });
    const metrics = prometheusMetrics(limiter);
    void many(4, () => track(limiter.run("a.org", () => undefined)));
    await clock.advance(6_000);
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_starts_total", { host: "a.org" })).toBe(4);
    expect(sumOf(samples, "politely_wait_seconds_count", { host: "a.org" })).toBe(4);
    expect(sumOf(samples, "politely_wait_seconds_sum", { host: "a.org" })).toBe(0 + 2 + 4 + 6);
    expect(sumOf(samples, "politely_wait_seconds_bucket", { host: "a.org", le: "5" })).toBe(3);
    expect(sumOf(samples, "politely_start_interval_seconds_count", { host: "a.org" })).toBe(3);
    expect(sumOf(samples, "politely_start_interval_seconds_bucket", { host: "a.org", le: "1.5" })).toBe(0);
    expect(sumOf(samples, "politely_start_interval_seconds_bucket", { host: "a.org", le: "2" })).toBe(3);
  });

  it("counts refusals by code, cancelled and expired waits, and cooldowns", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { concurrency: 1, maxQueue: 1 } }, { clock });
    const metrics = prometheusMetrics(limiter);
    const first = await limiter.acquire("a.org");
    expect(limiter.tryAcquire("a.org")).toBeUndefined();
    const abort = new AbortController();
    const cancelled = failure(limiter.acquire("a.org", { signal: abort.signal }));
    await failure(limiter.acquire("a.org"));
    abort.abort();
    await cancelled;
    const expired = failure(limiter.acquire("a.org", { maxWait: 500 }));
    await clock.advance(500);
    await expired;
    first.release("rate_limited");
    await failure(limiter.acquire("a.org", { maxWait: 500 }));
    const samples = await scrape(metrics);
    const refused = (code: string): number => sumOf(samples, "politely_refused_total", { host: "a.org", code });
    expect([refused("POLITELY_BUSY"), refused("POLITELY_QUEUE_FULL"), refused("POLITELY_DEADLINE")]).toEqual([1, 1, 1]);
    expect(sumOf(samples, "politely_cancelled_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_expired_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_throttled_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_cooldowns_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_cooldown_seconds", { host: "a.org" })).toBe(60);
  });

  it("counts a 429 that is reported while the body is still read", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { concurrency: 3 } }, { clock });
    const metrics = prometheusMetrics(limiter);
    const permit = await limiter.acquire("a.org");
    permit.report({ status: 429 });
    expect(sumOf(await scrape(metrics), "politely_throttled_total")).toBe(1);
    permit.release();
    expect(sumOf(await scrape(metrics), "politely_throttled_total", { host: "a.org" })).toBe(1);
  });

  it("does not count what happened before it was made", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { cooldown: 1 } }, { clock });
    (await limiter.acquire("a.org")).release("rate_limited");
    const metrics = prometheusMetrics(limiter);
    await clock.advance(5_000);
    (await limiter.acquire("a.org")).release("rate_limited");
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_throttled_total")).toBe(1);
    expect(sumOf(samples, "politely_throttled_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_starts_total")).toBe(1);
  });

  it("shows who is in flight, who waits, and the tokens that are left", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { rate: "1/10s", burst: 5, concurrency: 2 } }, { clock });
    const metrics = prometheusMetrics(limiter);
    void many(3, () => track(limiter.acquire("a.org")));
    await clock.settle();
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_in_flight", { host: "a.org" })).toBe(2);
    expect(sumOf(samples, "politely_waiting", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_tokens_available", { host: "a.org" })).toBe(3);
    expect(samples.some(({ name, labels }) => name === "politely_tokens_available" && labels.host === "other")).toBe(
      false,
    );
    expect(sumOf(samples, "politely_hosts")).toBe(1);
  });

  it("sees a start while another is in flight, though both are over at the scrape", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {}, hosts: { "one.org": { concurrency: 1 } } }, { clock });
    const metrics = prometheusMetrics(limiter);
    for (const host of ["one.org", "two.org"]) void many(2, () => track(limiter.run(host, () => clock.settle())));
    for (let turn = 0; turn < 5; turn++) await clock.advance(10);
    const samples = await scrape(metrics);
    const aboveOne = (host: string): number =>
      sumOf(samples, "politely_start_concurrency_count", { host }) -
      sumOf(samples, "politely_start_concurrency_bucket", { host, le: "1" });
    expect([aboveOne("one.org"), aboveOne("two.org")]).toEqual([0, 1]);
    expect(sumOf(samples, "politely_in_flight")).toBe(0);
  });

  it("counts lapsed permits, followed ones and others", async () => {
    const clock = new VirtualClock();
    const limiter = politely(
      { default: { maxHold: "5s" }, hosts: { "a.org": { concurrency: 2, maxHold: "5s" } } },
      { clock },
    );
    const metrics = prometheusMetrics(limiter);
    await limiter.acquire("a.org");
    await limiter.acquire("b.org");
    await clock.advance(5_000);
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_lapsed_permits_total", { host: "a.org" })).toBe(1);
    expect(sumOf(samples, "politely_lapsed_permits_total", { host: "b.org" })).toBe(1);
  });

  it("counts from the start before when one was given back unused", async () => {
    const clock = new VirtualClock();
    const limiter = limit({ minDelay: "2s" }, { clock });
    const metrics = prometheusMetrics(limiter);
    (await limiter.acquire()).release("success");
    const second = limiter.acquire();
    await clock.advance(2_000);
    (await second).release("unused");
    const third = limiter.acquire();
    await clock.advance(100);
    (await third).release("success");
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_unused_total")).toBe(1);
    expect(sumOf(samples, "politely_start_interval_seconds_bucket", { le: "1.5" })).toBe(0);
  });

  it("gives a recorded start neither a wait nor a place", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    const metrics = prometheusMetrics(limiter);
    await clock.advance(10_000);
    limiter.record("a.org", "success");
    limiter.record("a.org", "success", { startedAtMs: 4_000 });
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_starts_total")).toBe(2);
    expect(sumOf(samples, "politely_wait_seconds_count")).toBe(0);
    expect(sumOf(samples, "politely_start_concurrency_count")).toBe(0);
    expect(sumOf(samples, "politely_start_interval_seconds_count")).toBe(0);
  });

  it("writes names with quotes, backslashes and line ends so that they can be read back", async () => {
    const clock = new VirtualClock();
    const names = ['say "hi"', "back\\slash", "{a=b},"];
    const limiter = politely(
      { default: {}, groupBy: (url) => names[Number(url.pathname.slice(1))] ?? "none" },
      { clock },
    );
    const metrics = prometheusMetrics(limiter, { labels: { limiter: 'the\n"first"' } });
    for (const index of names.keys()) (await limiter.acquire(`https://a.org/${index}`)).release();
    const samples = await scrape(metrics);
    for (const host of names)
      expect(sumOf(samples, "politely_starts_total", { host, limiter: 'the\n"first"' })).toBe(1);
  });

  it("has every series once", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {}, groupBy: (url) => url.pathname.slice(1) || "none" }, { clock });
    const metrics = prometheusMetrics(limiter);
    for (const key of ["other", "*", "a", "A", `${"x".repeat(300)}`])
      (await limiter.acquire(`https://a.org/${key}`)).release();
    const series = parseScrape(await metrics.text()).map(seriesOf);
    expect(new Set(series).size).toBe(series.length);
  });

  it("stops counting when it is closed", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    const metrics = prometheusMetrics(limiter);
    (await limiter.acquire("a.org")).release();
    metrics.close();
    (await limiter.acquire("a.org")).release();
    expect(sumOf(await scrape(metrics), "politely_starts_total")).toBe(1);
  });

  it.each([
    [{ maxHosts: -1 }, RangeError],
    [{ maxHosts: 1.5 }, RangeError],
    [{ maxHosts: "many" }, TypeError],
    [{ hosts: 3 }, TypeError],
    [{ labels: { host: "x" } }, RangeError],
    [{ labels: { "a-b": "x" } }, RangeError],
    [{ labels: { __name__: "x" } }, RangeError],
    [{ waitBuckets: [] }, RangeError],
    [{ waitBuckets: [1, 1] }, RangeError],
    [{ intervalBuckets: [-1, 2] }, RangeError],
    [{ tokensOf: 3 }, TypeError],
  ])("refuses %j", (options, kind) => {
    const limiter = politely({}, { clock: new VirtualClock() });
    expect(() => prometheusMetrics(limiter, options as object)).toThrow(kind);
    expect(() => prometheusMetrics({} as typeof limiter)).toThrow(TypeError);
  });
});
