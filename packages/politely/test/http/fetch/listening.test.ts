import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LimiterEvent, type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock, VirtualOrigin, type VirtualOriginOptions } from "../../../src/testing/index.js";
import { seeded } from "../../laws/seeded.js";

const URL_A = "https://a.example/";
const TOO_FAST: PolicyInput = { default: { rate: "1000/s", burst: 100, concurrency: 1, cooldown: "60s" } };

/** Sends `count` requests through a limiter to a simulated site, and lets virtual time run until all are answered. */
async function crawl(policy: PolicyInput, site: Omit<VirtualOriginOptions, "clock">, count: number) {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ ...site, clock });
  const polite = politely(policy, { clock, fetch: origin.fetch, random: () => 0 });
  const events: LimiterEvent[] = [];
  polite.subscribe((event) => events.push(event));
  const pages = Array.from({ length: count }, async () => (await polite.fetch(URL_A)).status);
  await clock.runToEnd();
  return { clock, origin, polite, events, statuses: await Promise.all(pages) };
}

describe("a site that says what remains", () => {
  it.each([
    ["the RateLimit list", { families: ["list"] }],
    ["the RateLimit triple", { families: ["triple"] }],
    ["X-RateLimit with seconds", { families: ["x"] }],
    ["X-RateLimit with Unix time", { families: ["x"], resetAs: "epoch" }],
    ["X-RateLimit with Unix time in milliseconds", { families: ["x"], resetAs: "epoch-ms" }],
  ] as const)("is never asked too often, though the policy is much too fast (%s)", async (_name, quotaHeaders) => {
    const limits = [{ kind: "fixed-window", rate: "20/min" }] as const;
    const { origin, clock } = await crawl(TOO_FAST, { limits, quotaHeaders, latency: 50 }, 100);
    expect(origin.refused).toBe(0);
    // Four whole minutes are needed at least; spreading must not waste much more than one.
    expect(clock.now()).toBeLessThan(6 * 60_000);
  });

  it("gets what remains spread over the time until the reset", async () => {
    const answers = () => ({ headers: { "x-ratelimit-remaining": "10", "x-ratelimit-reset": "100" } });
    const { origin } = await crawl(TOO_FAST, { answers }, 4);
    expect(origin.requests.map(({ atMs }) => atMs)).toEqual([0, 10_000, 20_000, 30_000]);
  });

  it("is left alone until the reset when nothing remains", async () => {
    const headers = { "ratelimit-limit": "5", "ratelimit-remaining": "0", "ratelimit-reset": "30" };
    const { origin, events } = await crawl(TOO_FAST, { answers: [{ headers }] }, 3);
    expect(origin.requests[1].atMs).toBe(30_000);
    expect(events.filter(({ type }) => type === "cooldown")).toEqual([]);
  });

  it("says so in explain", async () => {
    const clock = new VirtualClock();
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30" };
    const origin = new VirtualOrigin({ clock, answers: [{ headers }] });
    const polite = politely(TOO_FAST, { clock, fetch: origin.fetch });
    const page = polite.fetch(URL_A);
    await clock.advance(10);
    await page;
    expect(polite.explain(URL_A)).toMatchObject({ proceed: false });
    expect(polite.explain(URL_A).causes[0]).toMatchObject({ limit: "headers", scope: "host" });
    expect(polite.explain(URL_A).causes[0].message).toMatch(/x-ratelimit.* 0 left for/i);
    expect(polite.check(URL_A).waitMs).toBeCloseTo(29_990, 0);
  });

  it("may have a wrong clock: its own Date is what its times are measured from", async () => {
    for (const wallSkewMs of [-3_600_000, 3_600_000]) {
      const limits = [{ kind: "fixed-window", rate: "20/min" }] as const;
      const quotaHeaders = { families: ["x"], resetAs: "epoch" } as const;
      const { origin, clock } = await crawl(TOO_FAST, { limits, quotaHeaders, wallSkewMs, latency: 50 }, 60);
      expect(origin.refused).toBe(0);
      expect(clock.now()).toBeLessThan(5 * 60_000);
    }
  });

  it("is not believed where the answer comes from a cache", async () => {
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "3000", age: "12" };
    const { clock } = await crawl(TOO_FAST, { answers: () => ({ headers }) }, 5);
    expect(clock.now()).toBeLessThan(1_000);
  });

  it("cannot make the client faster than its policy", async () => {
    const headers = { "x-ratelimit-limit": "100000", "x-ratelimit-remaining": "99999", "x-ratelimit-reset": "1" };
    const { origin } = await crawl({ default: { minDelay: "5s" } }, { answers: () => ({ headers }) }, 4);
    expect(origin.shortestGapMs).toBe(5_000);
  });

  it("does no harm by answers out of order, whatever they say", async () => {
    const answer = fc.record({
      remaining: fc.integer({ min: 0, max: 50 }),
      reset: fc.integer({ min: 0, max: 60 }),
      latencyMs: fc.integer({ min: 0, max: 5_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(answer, { minLength: 5, maxLength: 30 }), async (script) => {
        const policy: PolicyInput = { default: { window: "5/s", concurrency: 8 } };
        const answers = script.map(({ remaining, reset, latencyMs }) => ({
          headers: { "x-ratelimit-remaining": `${remaining}`, "x-ratelimit-reset": `${reset}` },
          latencyMs,
        }));
        const { origin, polite } = await crawl(policy, { answers }, script.length + 5);
        expect(origin.total).toBe(script.length + 5);
        expect(origin.mostInAny(1_000)).toBeLessThanOrEqual(5);
        expect(polite.stats(URL_A)).toMatchObject({ inFlight: 0, waiting: 0 });
      }),
      seeded(40),
    );
  });

  it("is not asked too often by several at once either, once the first has answered", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 10, max: 40 }), async (concurrency, count) => {
        const clock = new VirtualClock();
        const origin = new VirtualOrigin({
          clock,
          limits: [{ kind: "fixed-window", rate: { count, per: "1min" } }],
          quotaHeaders: { families: ["list"] },
          latency: { kind: "uniform", minMs: 20, maxMs: 900 },
        });
        const polite = politely({ default: { rate: "1000/s", concurrency } }, { clock, fetch: origin.fetch });
        const first = polite.fetch(URL_A);
        await clock.advance(1_000);
        await first;
        const pages = Array.from({ length: 3 * count }, () => polite.fetch(URL_A));
        await clock.runToEnd();
        await Promise.all(pages);
        expect(origin.refused).toBe(0);
      }),
      seeded(15),
    );
  });
});

describe("a site that says stop", () => {
  const limits = [{ kind: "token-bucket", rate: "1/s", burst: 5 }] as const;

  it("is left alone from the headers of the first 429 until its Retry-After has passed", async () => {
    const policy: PolicyInput = { default: { rate: "10/s", concurrency: 10 } };
    const { origin } = await crawl(policy, { limits, refusal: { retryAfter: { plusMs: 20_000 } }, latency: 250 }, 60);
    const first = origin.requests.find(({ status }) => status === 429);
    const heardMs = (first?.atMs ?? 0) + 250;
    const after = origin.requests.filter(({ atMs }) => atMs > heardMs);
    expect(after[0].atMs - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(20_000);
  });

  it("gets at most one probe for each cooldown, not 649 requests in 4 s (crawlee 4039)", async () => {
    const { origin, events } = await crawl(
      { default: { rate: "200/s", concurrency: 1, cooldown: "10s" } },
      { answers: () => 429 },
      20,
    );
    expect(origin.shortestGapMs).toBeGreaterThanOrEqual(10_000);
    expect(events.filter(({ type }) => type === "cooldown")).toHaveLength(origin.total);
  });

  it.each([["0"], ["-5"], ["soon"], [""]])("with Retry-After %j is left alone for the cooldown", async (text) => {
    const { origin } = await crawl(TOO_FAST, { answers: [{ status: 429, headers: { "retry-after": text } }] }, 2);
    expect(origin.requests[1].atMs).toBe(60_000);
  });

  it("without Retry-After but with an empty budget is left alone until that resets", async () => {
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "17" };
    for (const status of [429, 403]) {
      const { origin } = await crawl(TOO_FAST, { answers: [{ status, headers }] }, 2);
      expect(origin.requests[1].atMs).toBe(17_000);
    }
  });

  it("with both a Retry-After and the reset of an empty budget is left alone for the Retry-After", async () => {
    const headers = { "retry-after": "5", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "3600" };
    const { origin } = await crawl(TOO_FAST, { answers: [{ status: 429, headers }] }, 2);
    expect(origin.requests[1].atMs).toBe(5_000);
  });

  it("by a 503 without Retry-After climbs the backoff, whatever remains", async () => {
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2" };
    const { origin } = await crawl(TOO_FAST, { answers: [{ status: 503, headers }] }, 2);
    expect(origin.requests[1].atMs).toBe(5_000);
  });

  it("by a plain 403 is not left alone", async () => {
    const { clock } = await crawl(TOO_FAST, { answers: [403, 403] }, 3);
    expect(clock.now()).toBeLessThan(100);
  });

  it("with a date on a wrong clock is understood by its own Date", async () => {
    const site = { limits, wallSkewMs: 7_200_000, refusal: { retryAfter: "date" } } as const;
    const { clock } = await crawl({ default: { rate: "10/s", concurrency: 1 } }, site, 12);
    expect(clock.now()).toBeLessThan(60_000);
  });

  it("while its body is still on the way is heard all the same", async () => {
    const answers = [{ status: 429, headers: { "retry-after": "30" }, body: "slowly", bodyMs: 10_000 }];
    const { origin } = await crawl({ default: { rate: "5/s", concurrency: 10 } }, { answers, latency: 10 }, 8);
    // Nothing else was on its way: the gap of 5/s is longer than the latency.
    expect(origin.requests[1].atMs).toBe(30_010);
  });
});
