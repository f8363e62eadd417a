import { describe, expect, it } from "vitest";
import { parseRateLimit, type RateLimit } from "../../../src/http/headers/index.js";

type Fields = Readonly<Record<string, string>>;
type Expected = Partial<Record<"limit" | "remaining" | "resetMs" | "policyWindowMs" | "retryAfterMs", number>>;

const nowMs = Date.UTC(2026, 2, 1);
const nowSeconds = nowMs / 1_000;
const day = 86_400_000;

/** What is not in `expected` has to be absent. */
function expectRates(headers: Fields, expected: Expected): RateLimit {
  const result = parseRateLimit(headers, nowMs);
  const { limit, remaining, resetMs, policyWindowMs, retryAfterMs } = result;
  const absent = { limit: undefined, remaining: undefined, resetMs: undefined, policyWindowMs: undefined };
  expect({ limit, remaining, resetMs, policyWindowMs, retryAfterMs }).toEqual({
    ...absent,
    retryAfterMs: undefined,
    ...expected,
  });
  // A Headers object has its fields in another order, and so are the buckets.
  const { buckets, ...rest } = parseRateLimit(new Headers(headers), nowMs);
  expect(rest).toEqual({ ...result, buckets: undefined });
  expect(buckets?.map(({ name }) => name).sort()).toEqual(result.buckets?.map(({ name }) => name).sort());
  return result;
}

describe("parseRateLimit, used and limit in one value", () => {
  it.each<[string, Fields, Expected]>([
    ["Shopify", { "X-Shopify-Shop-Api-Call-Limit": "32/40" }, { limit: 40, remaining: 8 }],
    ["Shopify, full", { "X-Shopify-Shop-Api-Call-Limit": "40/40" }, { limit: 40, remaining: 0 }],
    ["Shopify, over", { "X-Shopify-Shop-Api-Call-Limit": "41/40" }, { limit: 40, remaining: 0 }],
    ["Shopify, blanks", { "X-Shopify-Shop-Api-Call-Limit": " 1 / 80 " }, { limit: 80, remaining: 79 }],
    ["Gorgias", { "X-Gorgias-Account-Api-Call-Limit": "39/40" }, { limit: 40, remaining: 1 }],
    ["Lightspeed, decimals", { "X-LS-API-Bucket-Level": "10.5/180" }, { limit: 180, remaining: 169 }],
    ["Salesforce", { "Sforce-Limit-Info": "api-usage=18/5000" }, { limit: 5_000, remaining: 4_982 }],
    [
      "Salesforce with the app's own",
      { "Sforce-Limit-Info": "api-usage=18/5000, per-app-api-usage=240/250(appName=sample)" },
      { limit: 250, remaining: 10 },
    ],
    [
      "Salesforce with semicolons",
      { "Sforce-Limit-Info": "api-usage=18/5000; per-app-api-usage=240/250(appName=sample)" },
      { limit: 250, remaining: 10 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expectRates(headers, expected);
  });

  it.each(["40", "a/b", "-1/40", "32/", "/40", "32/40/50", ""])("takes %j for absent", (value) => {
    expectRates({ "X-Shopify-Shop-Api-Call-Limit": value }, {});
  });
});

describe("parseRateLimit, dimension in the name", () => {
  it.each<[string, Fields, Expected]>([
    [
      "requests and tokens, the tokens empty",
      {
        "x-ratelimit-limit-requests": "3500",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "17ms",
        "x-ratelimit-limit-tokens": "90000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
      },
      { limit: 90_000, remaining: 0, resetMs: 360_000 },
    ],
    [
      "requests of the day and tokens of the minute",
      {
        "x-ratelimit-limit-requests-day": "14400",
        "x-ratelimit-remaining-requests-day": "14399",
        "x-ratelimit-reset-requests-day": "33011.382867",
        "x-ratelimit-limit-tokens-minute": "60000",
        "x-ratelimit-remaining-tokens-minute": "30000",
        "x-ratelimit-reset-tokens-minute": "11.382867",
      },
      { limit: 60_000, remaining: 30_000, resetMs: 11_383, policyWindowMs: 60_000 },
    ],
    [
      "the day, empty",
      { "x-ratelimit-limit-requests-day": "14400", "x-ratelimit-remaining-requests-day": "0" },
      { limit: 14_400, remaining: 0, policyWindowMs: day },
    ],
    [
      "minute, hour and day",
      {
        "X-RateLimit-Limit-Minute": "60",
        "X-RateLimit-Remaining-Minute": "59",
        "X-RateLimit-Limit-Hour": "1000",
        "X-RateLimit-Remaining-Hour": "10",
        "X-RateLimit-Limit-Day": "5000",
        "X-RateLimit-Remaining-Day": "4000",
      },
      { limit: 1_000, remaining: 10, policyWindowMs: 3_600_000 },
    ],
    [
      "a second",
      { "x-ratelimit-limit-second": "2", "x-ratelimit-remaining-second": "1" },
      { limit: 2, remaining: 1, policyWindowMs: 1_000 },
    ],
    [
      "a month, whose length varies",
      { "x-ratelimit-limit-month": "1000", "x-ratelimit-remaining-month": "999" },
      { limit: 1_000, remaining: 999 },
    ],
    [
      "requests per minute, abbreviated",
      { "x-ratelimit-limit-req-minute": "360", "x-ratelimit-remaining-req-minute": "359" },
      { limit: 360, remaining: 359, policyWindowMs: 60_000 },
    ],
    [
      "the dimension in the middle",
      {
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "999",
        "anthropic-ratelimit-requests-reset": "2026-03-01T00:00:01Z",
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-03-01T00:00:10Z",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-03-01T00:00:07Z",
        "anthropic-ratelimit-unified-status": "allowed",
      },
      { limit: 40_000, remaining: 0, resetMs: 10_000 },
    ],
    [
      "requests and complexity, reset in epoch milliseconds",
      {
        "X-RateLimit-Requests-Limit": "1500",
        "X-RateLimit-Requests-Remaining": "1499",
        "X-RateLimit-Requests-Reset": String(nowMs + 3_600_000),
        "X-RateLimit-Complexity-Limit": "250000",
        "X-RateLimit-Complexity-Remaining": "1000",
        "X-RateLimit-Complexity-Reset": String(nowMs + 1_800_000),
        "X-Complexity": "50",
      },
      { limit: 250_000, remaining: 1_000, resetMs: 1_800_000 },
    ],
    [
      "user and client in one word with the role",
      {
        "X-RateLimit-UserLimit": "500",
        "X-RateLimit-UserRemaining": "10",
        "X-RateLimit-UserReset": String(nowSeconds + 120),
        "X-RateLimit-ClientLimit": "12500",
        "X-RateLimit-ClientRemaining": "12000",
      },
      { limit: 500, remaining: 10, resetMs: 120_000 },
    ],
    [
      "per hour and per day, in one word",
      {
        "X-Ratelimit-Perday-Limit": "5000",
        "X-Ratelimit-Perday-Remaining": "100",
        "X-Ratelimit-Perday-Reset": "80000",
        "X-Ratelimit-Perhour-Limit": "1000",
        "X-Ratelimit-Perhour-Remaining": "100",
        "X-Ratelimit-Perhour-Reset": "1800",
      },
      { limit: 5_000, remaining: 100, resetMs: 80_000_000, policyWindowMs: day },
    ],
    [
      "a window of many hours",
      { "x-app-limit-24hour-limit": "100", "x-app-limit-24hour-remaining": "99", "x-app-limit-24hour-reset": "60" },
      { limit: 100, remaining: 99, resetMs: 60_000, policyWindowMs: day },
    ],
    [
      "words nobody has heard of, as long as limit and rest are there",
      {
        "x-rate-limit-member-max": "300",
        "x-rate-limit-member-remaining": "7",
        "x-rate-limit-member-interval-ms": "100",
      },
      { limit: 300, remaining: 7, policyWindowMs: 100 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expectRates(headers, expected);
  });

  it("lists the buckets by their dimension", () => {
    const { buckets } = expectRates(
      {
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "5",
      },
      { limit: 10, remaining: 9, resetMs: 1_000 },
    );
    expect(buckets).toEqual([
      { name: "requests", limit: 10, remaining: 9, resetMs: 1_000 },
      { name: "tokens", remaining: 5 },
    ]);
  });

  it.each<[string, Fields]>([
    ["a share", { "x-ratelimit-remaining-percent": "3" }],
    ["what one request took", { "x-ratelimit-used-currentrequest": "3", "x-ratelimit-requested-tokens": "1" }],
    ["words", { "x-ratelimit-limit-type": "user", "x-ratelimit-resource": "core", "x-ratelimit-nearlimit": "true" }],
    [
      "how many at once",
      { "X-Sentry-Rate-Limit-ConcurrentLimit": "25", "X-Sentry-Rate-Limit-ConcurrentRemaining": "0" },
    ],
    [
      "how many at once, in two words",
      { "x-ratelimit-concurrent-limit": "5", "x-ratelimit-concurrent-remaining": "0" },
    ],
    ["concurrency", { "x-concurrency-limit": "1", "twilio-concurrent-requests": "1" }],
    ["a time to live alone", { "X-Ttl": "60" }],
    ["a limit in a word", { "x-ratelimited": "1", "x-corporate-limit": "1", "content-length": "0" }],
  ])("passes over %s", (_title, headers) => {
    expectRates(headers, {});
  });
});

describe("parseRateLimit, two windows in one value", () => {
  it.each<[string, Fields, Expected]>([
    [
      "limit and usage, the day nearer to its end",
      { "X-RateLimit-Limit": "200,2000", "X-RateLimit-Usage": "12,430" },
      { limit: 2_000, remaining: 1_570, policyWindowMs: day },
    ],
    [
      "limit and usage, the quarter of an hour empty",
      { "X-RateLimit-Limit": "200,2000", "X-RateLimit-Usage": "200,430" },
      { limit: 200, remaining: 0, policyWindowMs: 900_000 },
    ],
    [
      "the same for reads, beside",
      { "X-ReadRateLimit-Limit": "100,1000", "X-ReadRateLimit-Usage": "101,430" },
      { limit: 100, remaining: 0, policyWindowMs: 900_000 },
    ],
    [
      "the same under the names of the drafts, each with its reset",
      { "RateLimit-Limit": "520, 5200", "RateLimit-Usage": "520, 600", "RateLimit-Reset": "300, 40000" },
      { limit: 520, remaining: 0, resetMs: 300_000, policyWindowMs: 900_000 },
    ],
    [
      "limits with their seconds",
      { "X-App-Rate-Limit": "20:1,100:120", "X-App-Rate-Limit-Count": "1:1,57:120" },
      { limit: 100, remaining: 43, policyWindowMs: 120_000 },
    ],
    [
      "limits with their seconds, the counts in another order",
      { "X-App-Rate-Limit": "20:1,100:120", "X-App-Rate-Limit-Count": "57:120,20:1" },
      { limit: 20, remaining: 0, policyWindowMs: 1_000 },
    ],
    [
      "app and method, the method nearer to its end",
      {
        "X-App-Rate-Limit": "20:1,100:120",
        "X-App-Rate-Limit-Count": "1:1,1:120",
        "X-Method-Rate-Limit": "2000:60",
        "X-Method-Rate-Limit-Count": "1999:60",
        "X-Rate-Limit-Type": "method",
      },
      { limit: 2_000, remaining: 1, policyWindowMs: 60_000 },
    ],
    ["limits without counts", { "X-App-Rate-Limit": "20:1,100:120" }, { limit: 20, policyWindowMs: 1_000 }],
    [
      "a limit with policies behind it, and one rest",
      {
        "X-RateLimit-Limit": "100, 100;window=60, 10000;window=86400",
        "X-RateLimit-Remaining": "98",
        "X-RateLimit-Reset": "3",
      },
      { limit: 100, remaining: 98, resetMs: 3_000, policyWindowMs: 60_000 },
    ],
    [
      "policies with a name that has a comma",
      { "x-ratelimit-limit": '10, 10;w=1;name="a, b"', "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1" },
      { limit: 10, remaining: 9, resetMs: 1_000, policyWindowMs: 1_000 },
    ],
    [
      "limits and rests, each with its window",
      {
        "X-RateLimit-Limit": "50;window=1, 2500;window=60",
        "X-RateLimit-Remaining": "49;window=1, 5;window=60",
        "X-RateLimit-Reset": "1;window=1, 33;window=60",
      },
      { limit: 2_500, remaining: 5, resetMs: 33_000, policyWindowMs: 60_000 },
    ],
    [
      "fields sent twice",
      { "X-RateLimit-Limit": "60, 60", "X-RateLimit-Remaining": "5, 3", "X-RateLimit-Reset": "30, 30" },
      { limit: 60, remaining: 3, resetMs: 30_000 },
    ],
    [
      "one reset for both, with the comma of a date",
      {
        "X-RateLimit-Limit": "200,2000",
        "X-RateLimit-Usage": "200,430",
        "X-RateLimit-Reset": "Sun, 01 Mar 2026 00:15:00 GMT",
      },
      { limit: 200, remaining: 0, resetMs: 900_000, policyWindowMs: 900_000 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expectRates(headers, expected);
  });
});
