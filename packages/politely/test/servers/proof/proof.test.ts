import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Limits } from "../../../src/index.js";
import { compileRegister } from "../../http/adapters/register/compileRegister.js";
import { startHaproxy } from "../haproxy.js";
import { startNginx } from "../nginx.js";
import { type Client, clientsWith } from "./clients.js";
import { type Flooded, flood } from "./flood.js";
import { type Seen, type Stop, see, stopsIn } from "./measure.js";
import { kinds, originsOf, rulesFor, type SiteKind, startSites } from "./sites.js";
import { percent, Table } from "./table.js";

const testTimeoutMs = 120_000;
const requestsEach = 100;
/** A busy machine makes every answer late, and each period longer by that. */
const leastUsedShare = 0.25;
/** A request that nginx refuses does not count there, so that the next one is in time. */
const mostRefusedShare = 0.9;

const register = await compileRegister();
const clients = clientsWith(register.url);
const names = kinds.map(({ name }) => name);
const fromAnswer = new Table("Counted from the answer: 429s, and how much of the limit was used", ["", ...names]);
const fromStart = new Table("Counted from the start: share of 429s", ["", ...names]);
const tooFast = new Table("Ten times too fast, with Retry-After", [
  "",
  "stops",
  "came while stopped",
  "the last of these after",
  "next after Retry-After",
  "arrived of 40, at a host that says nothing but stop",
]);

afterAll(() => {
  register.remove();
  console.info([fromAnswer, fromStart, tooFast].join("\n"));
});

/** Some clients at a time, so that what is measured is not how busy the machine is with them. */
function rounds(...groups: readonly (readonly string[])[]): { title: string; round: Client[] }[] {
  return groups.map((group) => ({
    title: group.join(" and "),
    round: clients.filter(({ name }) => group.includes(name)),
  }));
}

interface Crawl {
  readonly client: Client;
  readonly limits: (kind: SiteKind) => Limits;
  readonly hostsEach: number;
  readonly retryAfterSec: number;
}

/** Sends 100 requests to each host of each kind at once, and reads what the servers saw. The client has seen the same. */
async function crawl({ client, limits, hostsEach, retryAfterSec }: Crawl): Promise<Seen[]> {
  await using sites = await startSites({ hostsEach, retryAfterSec });
  const { all } = sites;
  const policy = { hosts: rulesFor(all, limits) };
  const { tally } = await client.ask({ policy, origins: originsOf(all), requestsEach });
  const seen = await Promise.all(all.map(see));
  const refusedCount = seen.reduce((sum, site) => sum + site.refusedCount, 0);
  const servedCount = all.length * hostsEach * requestsEach - refusedCount;
  expect(tally).toEqual({ 200: servedCount, ...(refusedCount > 0 && { 429: refusedCount }) });
  for (const { requestCounts } of seen) expect(requestCounts).toEqual(Array(hostsEach).fill(requestsEach));
  return seen;
}

describe("counted from the answer, at the server's exact limit", () => {
  // The program of `register` is a process of its own; the others share this one.
  const pairs = rounds(["fetch", "axios"], ["undici", "register"], ["got", "ky"]);

  it.each(pairs)("no request of $title is refused", { timeout: testTimeoutMs }, async ({ round }) => {
    const limits = (kind: SiteKind): Limits => kind.fromAnswer;
    const seen = await Promise.all(round.map((client) => crawl({ client, limits, hostsEach: 5, retryAfterSec: 2 })));
    for (const [index, sites] of seen.entries()) {
      fromAnswer.add(round[index].name, ...sites.map((site) => `${site.refusedCount}, ${percent(site.usedShare)}`));
      for (const { site, refusedCount, usedShare } of sites) {
        expect({ site, refusedCount }).toEqual({ site, refusedCount: 0 });
        expect(usedShare).toBeGreaterThan(leastUsedShare);
      }
    }
  });
});

describe("counted from the start, at the server's exact limit", () => {
  const together = rounds(["fetch", "axios", "register"], ["undici", "got", "ky"]);

  it.each(together)(
    "every request of $title arrives, and some are refused",
    { timeout: testTimeoutMs },
    async ({ round }) => {
      // A Retry-After of 0 counts as absent: a 429 stops nobody for long, so that each request has the same chance of one.
      const limits = (kind: SiteKind): Limits => ({ ...kind.fromStart, cooldown: 1 });
      const seen = await Promise.all(round.map((client) => crawl({ client, limits, hostsEach: 2, retryAfterSec: 0 })));
      for (const [index, sites] of seen.entries()) {
        fromStart.add(round[index].name, ...sites.map(({ refusedShare }) => percent(refusedShare)));
        for (const { refusedShare } of sites) expect(refusedShare).toBeLessThan(mostRefusedShare);
      }
    },
  );
});

describe("ten times too fast", () => {
  const retryAfterSec = 2;
  const retryAfterMs = retryAfterSec * 1_000;
  const concurrency = 4;
  const limits: Limits = { rate: "200/s", concurrency, maxWait: "5s" };
  /** Those in flight beside the one refused, and those that took their places in the same turn, before it was heard. */
  const mostEarly = 2 * (concurrency - 1);
  let limited: Flooded[] = [];
  let closed: Flooded[] = [];

  beforeAll(async () => {
    const strict = Array.from({ length: 2 * clients.length }, () => ({ perSecond: 20 }));
    await using nginx = await startNginx({ limits: strict, retryAfterSec });
    // What haproxy refuses counts there: the first request is served, and no other for a minute.
    const once = clients.map(() => ({ count: 1, perMs: 60_000 }));
    await using haproxy = await startHaproxy({ limits: once, retryAfterSec });
    // Code that runs for the first time is slow to hear.
    await flood(nginx, clients, { limits: { minDelay: 50, countFrom: "answer" }, requestsEach: 5 });
    [limited, closed] = await Promise.all([
      flood(nginx, clients, { limits, requestsEach: 20 }),
      flood(haproxy, clients, { limits, requestsEach: 40 }),
    ]);
    for (const [index, { name, arrivals }] of limited.entries()) {
      const stops = arrivals.flatMap((log) => stopsIn(log, retryAfterMs));
      tooFast.add(name, ...describeStops(stops), String(closed[index].arrivals[0].length));
    }
  }, testTimeoutMs);

  it("nothing is granted between a 429 and the end of its Retry-After", () => {
    for (const { name, tally, heldGrantCount, arrivals } of limited) {
      expect(["200", "429", "POLITELY_DEADLINE"]).toEqual(expect.arrayContaining(Object.keys(tally)));
      const stops = arrivals.flatMap((log) => stopsIn(log, retryAfterMs));
      expect(stops.length).toBeGreaterThan(0);
      for (const { earlyMs } of stops) expect(earlyMs.length).toBeLessThanOrEqual(mostEarly);
      expect({ name, heldGrantCount }).toEqual({ name, heldGrantCount: 0 });
    }
  });

  it("a host that says nothing but stop is asked once in each cooldown", () => {
    const stops = closed.map(({ arrivals }) => stopsIn(arrivals[0], retryAfterMs));
    expect(closed.map(({ heldGrantCount }) => heldGrantCount)).toEqual(clients.map(() => 0));
    for (const [first, ...probes] of stops) {
      expect(first.earlyMs.length).toBeLessThanOrEqual(mostEarly);
      for (const { earlyMs } of probes) expect(earlyMs).toEqual([]);
    }
    expect(Math.max(...stops.map(({ length }) => length))).toBeGreaterThan(1);
  });
});

/** Cells for `tooFast`. */
function describeStops(stops: readonly Stop[]): string[] {
  const earlyCounts = stops.map(({ earlyMs }) => earlyMs.length);
  const nextMs = stops.flatMap(({ next }) => next?.afterMs ?? []);
  return [
    String(stops.length),
    String(Math.max(...earlyCounts)),
    `${Math.max(0, ...stops.flatMap(({ earlyMs }) => earlyMs))} ms`,
    `${Math.min(...nextMs)} to ${Math.max(...nextMs)} ms`,
  ];
}
