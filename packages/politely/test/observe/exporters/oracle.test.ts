import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Limiter, LimiterEvent } from "../../../src/index.js";
import { type PrometheusMetrics, prometheusMetrics } from "../../../src/prometheus.js";
import { anyEnding, anyScript } from "../../laws/arbitraries.js";
import { play } from "../../laws/play.js";
import { seeded } from "../../laws/seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes } from "../../laws/worlds.js";
import { drained } from "../../oracle/script.js";
import { only } from "../../verbs/support.js";
import { type Sample, scrape, sumOf } from "./scrape.js";

const anyHistory = anyWorld({ quota: true }).chain((world) =>
  fc.record({
    world: fc.constant(world),
    script: anyScript({
      hosts: worldHosts,
      scopes: worldScopes,
      maxCost: worldCost(world),
      priorities: true,
      maxWaits: true,
      tries: true,
      looks: true,
      cancels: true,
      stalls: true,
      outside: true,
      endings: anyEnding,
      policies: 2,
      maxLength: 60,
    }).map((body) => drained(body, 8, 3_000_000)),
    maxQueue: fc.constantFrom(1, 2, 100_000),
    maxHold: fc.constantFrom(1_000, 20_000, 600_000),
    maxHosts: fc.constantFrom(0, 1, 200),
    keepStats: fc.constantFrom(1, 100_000),
  }),
);

describe("over random histories", () => {
  it("every counter equals what was counted from events and statistics, and every histogram agrees", async () => {
    await fc.assert(
      fc.asyncProperty(anyHistory, async ({ world, script, maxQueue, maxHold, maxHosts, keepStats }) => {
        const policy = toPolicy(world);
        const events: LimiterEvent[] = [];
        let metrics: PrometheusMetrics | undefined;
        const { limiter, clock } = await play(script, {
          policies: [{ ...policy, default: { ...policy.default, maxQueue, maxHold } }, policy],
          options: { keepStats },
          onReady: (made) => {
            made.subscribe((event) => events.push(event));
            metrics = prometheusMetrics(made, { maxHosts });
          },
          // Looking now and then must not change what is counted.
          onStep: (run) => void (run.calls.length % 7 === 0 && metrics?.text()),
        });
        await clock.settle();
        if (metrics === undefined) throw new Error("the limiter is made before it is played");
        const samples = await scrape(metrics);
        expect(counted(samples)).toEqual(expected(events, limiter));
        if (maxHosts === 200)
          for (const host of worldHosts) expect(ofHost(samples, host)).toEqual(expectedOf(events, host));
      }),
      seeded(150),
    );
  });
});

function counted(samples: readonly Sample[]): Record<string, number> {
  return {
    starts: sumOf(samples, "politely_starts_total"),
    unused: sumOf(samples, "politely_unused_total"),
    refused: sumOf(samples, "politely_refused_total"),
    cancelled: sumOf(samples, "politely_cancelled_total"),
    expired: sumOf(samples, "politely_expired_total"),
    cooldowns: sumOf(samples, "politely_cooldowns_total"),
    throttled: sumOf(samples, "politely_throttled_total"),
    lapsed: sumOf(samples, "politely_lapsed_permits_total"),
    waits: sumOf(samples, "politely_wait_seconds_count"),
    waitedUs: Math.round(sumOf(samples, "politely_wait_seconds_sum") * 1_000_000),
    inFlight: sumOf(samples, "politely_in_flight"),
    waiting: sumOf(samples, "politely_waiting"),
  };
}

/** The same by going through everything once more, the obvious way. */
function expected(events: readonly LimiterEvent[], limiter: Limiter): Record<string, number> {
  const grants = only(events, "grant");
  const asked = grants.filter(({ recorded }) => recorded === undefined);
  const rows = limiter.stats();
  const total = (read: (row: (typeof rows)[number]) => number): number => rows.reduce((sum, row) => sum + read(row), 0);
  return {
    starts: grants.length,
    unused: only(events, "release").filter(({ outcome }) => outcome === "unused").length,
    refused: only(events, "refuse").length,
    cancelled: only(events, "cancel").length,
    expired: only(events, "expire").filter(({ what }) => what === "waiter").length,
    cooldowns: only(events, "cooldown").length,
    throttled: total(({ throttledRequests }) => throttledRequests),
    lapsed: total(({ lapsed }) => lapsed),
    waits: asked.length,
    waitedUs: Math.round(asked.reduce((sum, { waitedMs }) => sum + waitedMs, 0) * 1_000),
    inFlight: total(({ inFlight }) => inFlight),
    waiting: total(({ waiting }) => waiting),
  };
}

function ofHost(samples: readonly Sample[], host: string): Record<string, number> {
  const isOver = (le: string): number =>
    sumOf(samples, "politely_wait_seconds_count", { host }) -
    sumOf(samples, "politely_wait_seconds_bucket", { host, le });
  return {
    starts: sumOf(samples, "politely_starts_total", { host }),
    refused: sumOf(samples, "politely_refused_total", { host }),
    over5s: isOver("5"),
    over250ms: isOver("0.25"),
  };
}

function expectedOf(all: readonly LimiterEvent[], host: string): Record<string, number> {
  const events = all.filter(({ key }) => key === host);
  const waits = only(events, "grant").flatMap(({ waitedMs, recorded }) => (recorded === true ? [] : [waitedMs]));
  return {
    starts: only(events, "grant").length,
    refused: only(events, "refuse").length,
    over5s: waits.filter((waitedMs) => waitedMs > 5_000).length,
    over250ms: waits.filter((waitedMs) => waitedMs > 250).length,
  };
}
