import { type Explanation, politely, type Stats } from "politely";
import { VirtualClock } from "politely/testing";
import { expect, it } from "vitest";
import { HostFeed } from "../../../src/serve/feed/hostFeed.js";
import type { HostRow, HostState } from "../../../src/serve/feed/row.js";
import { Dice } from "./dice.js";

const policy = { default: { rate: "1/5s", concurrency: 4, cooldown: "30s" } } as const;
const hosts = Array.from({ length: 5_000 }, (_, index) => `h${index}.example`);

/** A limiter in virtual time whose answers to the feed are counted. */
function watched() {
  const clock = new VirtualClock();
  const limiter = politely(policy, { clock });
  const asked = { stats: 0, explain: 0 };
  const feed = new HostFeed({
    clock,
    policy: () => policy,
    limiter: {
      subscribe: (listener) => limiter.subscribe(listener),
      eachStats: () => limiter.eachStats(),
      explain: (target): Explanation => {
        asked.explain += 1;
        return limiter.explain(target);
      },
      stats: ((target?: string) => {
        asked.stats += 1;
        return target === undefined ? limiter.stats() : limiter.stats(target);
      }) as { (target: unknown): Stats | undefined; (): Stats[] },
    },
  });
  return { clock, limiter, feed, asked };
}

it("follows 5,000 hosts for an hour: each look is bounded, and a reader of all changes ends up with what the limiter says", async () => {
  const { clock, limiter, feed, asked } = watched();
  const dice = new Dice();
  const shown = new Map<string, HostRow>();
  const most = { rows: 0, stats: 0, explain: 0 };
  const look = async (): Promise<void> => {
    Object.assign(asked, { stats: 0, explain: 0 });
    const { changed } = await feed.look();
    const moment = feed.moment();
    for (const record of changed) shown.set(record.domain, record.row(moment));
    most.rows = Math.max(most.rows, changed.length);
    most.stats = Math.max(most.stats, asked.stats);
    most.explain = Math.max(most.explain, asked.explain);
  };
  const request = async (host: string): Promise<void> => {
    const permit = await limiter.acquire(host);
    clock.setTimer(clock.now() + dice.below(3_000), () =>
      permit.release(dice.below(50) === 0 ? "rate_limited" : "success"),
    );
  };

  for (const host of hosts) void request(host);
  for (let tick = 0; tick < 7_200; tick++) {
    // A crowd comes at once every twenty minutes, the rest is a trickle.
    const arrivals = tick % 2_400 === 1_200 ? 10_000 : 4;
    for (let count = 0; count < arrivals; count++) void request(hosts[dice.below(hosts.length)]);
    await clock.advance(500);
    await look();
  }
  // Nothing happens for a while: only looks that are due by themselves.
  for (let tick = 0; tick < 200; tick++) {
    await clock.advance(500);
    await look();
  }

  console.info(`most in one look: ${JSON.stringify(most)}`);
  expect(most.rows).toBeGreaterThan(1_000);
  expect(most.rows).toBeLessThanOrEqual(2_000);
  expect(most.stats).toBeLessThanOrEqual(2_001);
  expect(most.explain).toBeLessThanOrEqual(200);
  expect(shown.size).toBe(5_000);
  const differing = limiter.stats().filter((stats) => !isTrueOf(shown.get(stats.host), stats));
  expect(differing).toEqual([]);
  expect(feed.totals()).toMatchObject(sums([...shown.values()]));
  expect(feed.totals().starts).toBe(limiter.stats().reduce((sum, { granted }) => sum + granted, 0));
});

/** What a row must say, from the limiter's own books and the definition of the states. */
function isTrueOf(row: HostRow | undefined, stats: Stats): boolean {
  const state: HostState =
    stats.cooldownMs > 0 ? "cooling" : stats.waiting > 0 ? "waiting" : stats.inFlight > 0 ? "flowing" : "idle";
  return (
    row !== undefined &&
    row.state === state &&
    row.waiting === stats.waiting &&
    row.inFlight === stats.inFlight &&
    row.total === stats.totalRequests &&
    row.throttled === stats.throttledRequests &&
    row.perSecond === 0 &&
    row.allowedPerSecond === 0.2 &&
    row.limits === "1/5s, concurrency 4" &&
    Math.abs((row.lastAt ?? 0) - (stats.lastRequestAt?.getTime() ?? 0)) <= 1
  );
}

function sums(rows: readonly HostRow[]) {
  const hostsBy: Record<HostState, number> = { flowing: 0, waiting: 0, cooling: 0, paused: 0, idle: 0 };
  for (const { state } of rows) hostsBy[state] += 1;
  const sum = (field: "waiting" | "inFlight" | "throttled"): number => rows.reduce((all, row) => all + row[field], 0);
  return { hosts: hostsBy, waiting: sum("waiting"), inFlight: sum("inFlight"), throttled: sum("throttled") };
}
