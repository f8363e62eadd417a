import { expect, it } from "vitest";
import type { PolicyInput } from "../../src/policy/types.js";
import { Fleet } from "./fleet.js";
import { type Errand, playErrands } from "./oneOrStore.js";

const FAST = { rate: "10/s", burst: 10 } as const;

function by(proxy: number): { host: string; scopes: string[] } {
  return { host: "x.org", scopes: [`proxy:${proxy}`] };
}

async function bothStarts(policy: PolicyInput, errands: readonly Errand[]): Promise<void> {
  const here = await playErrands("here", policy, errands);
  expect(await playErrands("store", policy, errands)).toEqual(here);
}

it("starts requests by other proxies while one proxy has to wait, in the same process on a store", async () => {
  const policy = { default: FAST, scopes: { "proxy:*": { minDelay: "1m" } } } as const;
  const errands = [1, 1, 2, 3, 4].map((proxy, index) => ({ atMs: index * 100, target: by(proxy), holdMs: 50 }));
  expect(await playErrands("store", policy, errands)).toEqual([0, 60_000, 200, 300, 400]);
  await bothStarts(policy, errands);
});

it("starts requests by other proxies while one is told to stay away for five minutes", async () => {
  const policy = { default: FAST, scopes: { "proxy:*": FAST } } as const;
  const told = { kind: "rate_limited", retryAfterMs: 300_000, scope: "proxy:1" } as const;
  const errands = [1, 1, 2, 3, 4].map((proxy, index) => ({ atMs: index * 100, target: by(proxy), holdMs: 50 }));
  await bothStarts(policy, [{ ...errands[0], outcome: told }, ...errands.slice(1)]);
});

it("starts plain requests while an intent of their host has to wait, with a limit over everything", async () => {
  const policy = {
    default: FAST,
    hosts: { "x.org": { ...FAST, intents: { search: { minDelay: "1m" } } } },
    global: { rate: "100/s", burst: 50 },
  } as const;
  const search = { host: "x.org", intent: "search" };
  const targets = [search, search, "x.org", "x.org", "y.org"];
  await bothStarts(
    policy,
    targets.map((target, index) => ({ atMs: index * 100, target, holdMs: 50 })),
  );
});

it("loses no place among lanes that share some of their keys", async () => {
  const policy = {
    hosts: { "b.org": { concurrency: 1, intents: { search: { minDelay: 2_000 } } } },
    scopes: { "p:*": {} },
  };
  const scopes = ["p:1"];
  await bothStarts(policy, [
    { atMs: 734, target: { host: "b.org", intent: "search" }, holdMs: 110 },
    { atMs: 747, target: { host: "b.org", intent: "search", scopes }, holdMs: 100 },
    { atMs: 1_202, target: { host: "b.org", scopes }, holdMs: 100 },
    { atMs: 1_958, target: "b.org", holdMs: 100 },
  ]);
});

it("gives a place back that was granted ahead, when everything is paused before its instant", async () => {
  const fleet = new Fleet();
  const limits = { minDelay: "1s", concurrency: 1 } as const;
  const [one, other] = [fleet.add(limits), fleet.add(limits)];
  await fleet.demandNow(one, 1);
  const waiting = fleet.demand(one, 1);
  // The next start is granted up to 50 ms ahead.
  await fleet.clock.advance(985 - fleet.clock.now());
  await fleet.now(one.pause());
  await fleet.clock.advance(500);
  await fleet.demandNow(other, 1);
  await fleet.now(one.resume());
  await fleet.clock.advance(2_000);
  await waiting;
});

it("asks for nothing while everything is paused", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "10/s" });
  await fleet.now(limiter.pause());
  const work = fleet.demand(limiter, 3);
  await fleet.clock.advance(60_000);
  expect(fleet.calls).toBe(0);
  await fleet.now(limiter.resume());
  await fleet.now(work);
});

it("says of a proxy that is free that a request may proceed, while another proxy is waited for", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ default: FAST, scopes: { "proxy:*": { minDelay: "1m" } } });
  await fleet.now(limiter.acquire(by(1)));
  limiter.acquire(by(1)).catch(() => undefined);
  await fleet.clock.advance(100);
  expect(await fleet.now(limiter.check(by(2)))).toEqual({ proceed: true, waitMs: 0 });
  const { causes } = await fleet.now(limiter.explain(by(1)));
  expect(causes.map(({ limit, scope }) => `${limit} ${scope}`)).toEqual(["minDelay proxy:1", "queue host"]);
});

it.each([
  { what: "20 starts a second", global: { rate: "20/s" }, most: 2.5 },
  { what: "two places", global: { concurrency: 2 }, most: 6 },
] as const)("asks few times for a start when fifty hosts of one process share $what", async ({ global, most }) => {
  const fleet = new Fleet();
  const limiter = fleet.add({ default: {}, global });
  const hosts = Array.from({ length: 50 }, (_, index) => `h${index}.org`);
  const work = hosts.map((key) => fleet.demand(limiter, 5, { key, holdMs: 100 }));
  await fleet.clock.advance(60_000);
  await Promise.all(work);
  expect(fleet.starts).toHaveLength(250);
  // The two places are never left empty for longer than a round trip.
  if ("concurrency" in global) expect(fleet.starts.at(-1)?.atMs).toBeLessThan(125 * 103);
  expect(fleet.calls / fleet.starts.length).toBeLessThan(most);
});
