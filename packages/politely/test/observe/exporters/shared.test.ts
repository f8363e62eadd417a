import { describe, expect, it } from "vitest";
import { limit, politely, type SharedPermit } from "../../../src/index.js";
import { exclusive } from "../../../src/lease.js";
import { prometheusMetrics } from "../../../src/prometheus.js";
import { memoryStore } from "../../../src/stores/memory.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { Fleet } from "../../shared/fleet.js";
import { failure } from "../../verbs/support.js";
import { scrape, sumOf } from "./scrape.js";

describe("a limiter with a store", () => {
  it("is counted like one without", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ minDelay: "2s" });
    const metrics = prometheusMetrics(limiter);
    const work = fleet.demand(limiter, 3);
    await fleet.clock.advance(5_000);
    await work;
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_starts_total", { host: "x.org" })).toBe(3);
    expect(sumOf(samples, "politely_wait_seconds_bucket", { host: "x.org", le: "5" })).toBe(3);
    expect(sumOf(samples, "politely_start_interval_seconds_bucket", { host: "x.org", le: "1.5" })).toBe(0);
    expect(sumOf(samples, "politely_start_interval_seconds_count", { host: "x.org" })).toBe(2);
  });

  it("has tokens where the store is asked for them, and none where it is not", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/1000s", burst: 5 });
    const asking = prometheusMetrics(limiter, { tokensOf: (host) => limiter.stats(host) });
    const silent = prometheusMetrics(limiter);
    await fleet.demandNow(limiter, 2);
    const [asked, unasked] = await fleet.now(Promise.all([scrape(asking), scrape(silent)]));
    expect(sumOf(asked, "politely_tokens_available", { host: "x.org" })).toBeCloseTo(3, 2);
    expect(unasked.some(({ name }) => name === "politely_tokens_available")).toBe(false);
  });

  it("is scraped though asking for tokens fails", async () => {
    const clock = new VirtualClock();
    const limiter = limit({}, { clock });
    await limiter.acquire();
    const metrics = prometheusMetrics(limiter, { tokensOf: () => Promise.reject(new Error("away")) });
    await limiter.acquire();
    expect(sumOf(await scrape(metrics), "politely_starts_total")).toBe(1);
  });

  it("tells how often the store went away, and whether it is", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    const metrics = prometheusMetrics(limiter);
    const state = async (): Promise<number[]> => {
      const samples = await scrape(metrics);
      return [sumOf(samples, "politely_store_outages_total"), sumOf(samples, "politely_store_away")];
    };
    expect(await state()).toEqual([0, 0]);
    for (const outages of [1, 2]) {
      fleet.mood = "refusing";
      const work = fleet.demand(limiter, 1);
      await fleet.clock.advance(10_000);
      await work;
      expect(await state()).toEqual([outages, 1]);
      fleet.mood = "well";
      await fleet.clock.advance(60_000);
      expect(await state()).toEqual([outages, 0]);
    }
  });

  it("counts a permit that lost its place once, and its place as free", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ concurrency: 2, maxHold: "5s" });
    const metrics = prometheusMetrics(limiter);
    const first = await fleet.now(limiter.acquire("x.org"));
    await fleet.clock.advance(10_000);
    await fleet.demandNow(limiter, 1);
    await fleet.now(first.release());
    const samples = await scrape(metrics);
    expect(sumOf(samples, "politely_lapsed_permits_total", { host: "x.org" })).toBe(1);
    expect(sumOf(samples, "politely_start_concurrency_bucket", { host: "x.org", le: "1" })).toBe(2);
  });
});

/** Time goes on while anybody computes. */
class TickingClock extends VirtualClock {
  #looks = 0;

  override now(): number {
    this.#looks += 1;
    return super.now() + this.#looks / 1_000;
  }
}

it("a permit that lost its place is no longer counted when a clock goes on between its end and its expiry", async () => {
  const clock = new TickingClock();
  const store = memoryStore(() => Math.floor(clock.now() * 1_000));
  const limiter = politely({ default: { concurrency: 3, maxHold: "5s", permitTtl: "3s" } }, { clock, store });
  const metrics = prometheusMetrics(limiter);
  const acquire = async (): Promise<SharedPermit> => {
    const permit = limiter.acquire("x.org");
    await clock.advance(100);
    return permit;
  };
  await acquire();
  await clock.advance(4_000);
  await acquire();
  await clock.advance(3_000);
  await acquire();
  const samples = await scrape(metrics);
  expect(sumOf(samples, "politely_lapsed_permits_total", { host: "x.org" })).toBe(1);
  expect(sumOf(samples, "politely_start_concurrency_sum", { host: "x.org" })).toBe(1 + 2 + 2);
});

describe("countLease", () => {
  it("counts leases taken, refused, failed and lost, and those held now", async () => {
    const clock = new VirtualClock();
    const store = memoryStore(() => clock.now() * 1_000);
    const metrics = prometheusMetrics(limit({}, { clock }));
    const ask = (name: string, from = store) =>
      metrics.countLease(exclusive(from, name, { ttl: "30s", clock, label: "test" }));
    const state = async (): Promise<number[]> => {
      const samples = await scrape(metrics);
      const results = ["taken", "refused", "failed", "lost"].map((result) =>
        sumOf(samples, "politely_leases_total", { result }),
      );
      return [...results, sumOf(samples, "politely_leases_held")];
    };
    expect(await state()).toEqual([0, 0, 0, 0, 0]);
    const first = await ask("run");
    expect(await ask("run")).toMatchObject({ held: false, heldBy: "test" });
    expect(await state()).toEqual([1, 1, 0, 0, 1]);
    if (first.held) await first.release();
    expect(await state()).toEqual([1, 1, 0, 0, 0]);

    const broken = { ...store, transact: () => Promise.reject(new Error("connection refused")) };
    const failed = failure(ask("run", broken));
    await clock.advance(60_000);
    expect(await failed).toMatchObject({ code: "POLITELY_STORE" });
    const second = await ask("run");
    clock.stall(31_000);
    expect(second.held && second.signal.aborted).toBe(true);
    if (second.held) await second.release();
    expect(await state()).toEqual([2, 1, 1, 1, 0]);
  });

  it("answers with a lease that can be used like the one that was asked for", async () => {
    const clock = new VirtualClock();
    const store = memoryStore(() => clock.now() * 1_000);
    const metrics = prometheusMetrics(limit({}, { clock }));
    {
      await using lease = (await metrics.countLease(
        exclusive(store, "run", { ttl: "30s", clock }),
      )) as AsyncDisposable & { token: number };
      expect(lease.token).toBeGreaterThan(0);
    }
    expect(await exclusive(store, "run", { ttl: "30s", clock })).toMatchObject({ held: true });
  });
});
