import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HeadersLike } from "../../src/index.js";
import samples from "../fixtures/ratelimit-headers.json" with { type: "json" };
import { seeded } from "../laws/seeded.js";
import { granted, keyRig, only, rig } from "../verbs/support.js";

const hour = 3_600_000;
const day = 24 * hour;
const endless = "9".repeat(30);

describe("what a site asks for in its headers", () => {
  it.each<[string, Readonly<Record<string, string>>]>([
    ["a Retry-After of a year", { "retry-after": "31536000" }],
    ["a Retry-After without end", { "retry-after": endless }],
    ["a date far ahead", { "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }],
    ["an empty budget that resets in a year", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "31536000" }],
    ["an empty budget of the drafts", { ratelimit: '"a";r=0;t=999999999999999' }],
  ])("holds nobody for longer than a day: %s", async (_title, headers) => {
    const { clock, limiter, events } = keyRig({ minDelay: 1 });
    (await limiter.acquire()).release({ status: 429, headers });
    expect(limiter.check().waitMs).toBe(day);
    await clock.advance(day);
    granted(limiter.tryAcquire()).release({ status: 429, headers });
    // It is told of once.
    expect(only(events, "warn").map(({ message }) => message)).toEqual([expect.stringContaining("(maxRetryAfter)")]);
  });

  it("holds nobody for longer than a day when a budget is nearly empty, either", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    const headers = { "x-ratelimit-remaining": "1", "x-ratelimit-reset": endless };
    (await limiter.acquire()).release({ status: 200, headers });
    expect(limiter.check().waitMs).toBeLessThanOrEqual(day);
  });

  it("counts up to maxRetryAfter of the host", async () => {
    const { limiter } = rig({ hosts: { "short.org": { maxRetryAfter: "2h" }, "long.org": { maxRetryAfter: "30d" } } });
    for (const [host, waitMs] of [
      ["short.org", 2 * hour],
      ["long.org", 20 * day],
      ["other.org", day],
    ] as const) {
      (await limiter.acquire(host)).release({ status: 429, headers: { "retry-after": String((20 * day) / 1_000) } });
      expect([host, limiter.check(host).waitMs]).toEqual([host, waitMs]);
    }
  });

  it("is cut for a recorded request and for one that is reported early, too", async () => {
    const { limiter } = rig({ default: { rate: "100/s" } });
    const year = { status: 429, headers: { "retry-after": "31536000" } };
    limiter.record("a.org", year);
    const permit = await limiter.acquire("b.org");
    permit.report(year);
    for (const host of ["a.org", "b.org"]) expect(limiter.check(host).waitMs).toBe(day);
  });

  it("is not what a program says itself: that is kept in full", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    (await limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 60 * day });
    expect(limiter.check().waitMs).toBe(60 * day);
  });

  it("with a 413 is too many requests where it says when to come back", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    (await limiter.acquire()).release({ status: 413, headers: { "retry-after": "5" } });
    expect(limiter.check().waitMs).toBe(5_000);
    const other = keyRig({ minDelay: 1 }).limiter;
    (await other.acquire()).release({ status: 413 });
    expect(other.check().waitMs).toBe(1);
  });

  it("neither throws nor holds anybody for longer than a day, whatever it is", async () => {
    const names = [
      ...new Set(samples.flatMap(({ headers }) => Object.keys(headers))),
      "retry-after-ms",
      "x-retry-after",
    ];
    const value = fc.oneof(
      fc.constantFrom(...samples.flatMap(({ headers }) => Object.values(headers).flat())),
      fc.constantFrom(
        "-1",
        endless,
        "Thu, 01 Jan 1960 00:00:00 GMT",
        "1960-01-01T00:00:00Z",
        "\u0000\ufffd\u00ff",
        "-5d",
      ),
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
      fc.string({ unit: "binary" }),
    );
    const fields = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 5 });
    const status = fc.constantFrom(200, 403, 413, 429, 503);
    await fc.assert(
      fc.asyncProperty(fields, status, async (headers, answered) => {
        const { limiter } = keyRig({ minDelay: 1, backoff: "none" });
        (await limiter.acquire()).release({ status: answered, headers });
        expect(limiter.check().waitMs).toBeLessThanOrEqual(day);
      }),
      seeded(1_000),
    );
  });

  it("is read soon, of a hundred thousand fields", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    const fields = Array.from({ length: 100_000 }, (_, i) => [`x-ratelimit-remaining-${i}`, `${i}`]);
    const startedMs = performance.now();
    for (const headers of [Object.fromEntries(fields), fields, fields.flat(), new Map(fields as [string, string][])]) {
      granted(limiter.tryAcquire()).release({ status: 200, headers: headers as unknown as HeadersLike });
      limiter.reset("all");
    }
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });
});
