import { describe, expect, it } from "vitest";
import { parseRateLimit } from "../../../src/http/headers/index.js";

type Fields = Readonly<Record<string, string>>;
type Expected = Partial<Record<"limit" | "remaining" | "resetMs" | "policyWindowMs" | "retryAfterMs", number>>;

const nowMs = Date.UTC(2026, 2, 1);
const nowSeconds = nowMs / 1_000;
const day = 86_400_000;

function expectRates(headers: Fields, expected: Expected): void {
  const { limit, remaining, resetMs, policyWindowMs, retryAfterMs } = parseRateLimit(headers, nowMs);
  const found = Object.entries({ limit, remaining, resetMs, policyWindowMs, retryAfterMs });
  expect(Object.fromEntries(found.filter(([, value]) => value !== undefined))).toEqual(expected);
}

describe("parseRateLimit, window given", () => {
  const limit = { "X-RateLimit-Limit": "100" };

  it.each<[string, string, number]>([
    ["X-RateLimit-Window", "60", 60_000],
    ["X-RateLimit-Window", "5m", 300_000],
    ["X-RateLimit-Window", "0.5", 500],
    ["X-RateLimit-Window", "minute", 60_000],
    ["X-RateLimit-Window", "1h30m", 5_400_000],
    ["X-RateLimit-Window-Sec", "900", 900_000],
    ["X-RateLimit-Window-Seconds", "900", 900_000],
    ["X-RateLimit-Window-Ms", "1500", 1_500],
    ["X-RateLimit-Interval-Seconds", "1", 1_000],
    ["X-RateLimit-Interval-Milliseconds", "10000", 10_000],
    ["X-RateLimit-Period", "3600", 3_600_000],
    ["X-RateLimit-Period-In-Sec", "60", 60_000],
    ["X-Rate-Limit-Interval", "1", 1_000],
    ["X-Rate-Limit-Interval", "1s", 1_000],
    ["X-Rate-Limit-Interval", "24 hours", day],
    ["X-Rate-Limit-Interval", "1 Minute", 60_000],
    ["X-Rate-Limit-Interval", "500ms", 500],
    ["X-Rate-Limit-Interval", "2 days", 2 * day],
    ["X-Rate-Limit-Interval", "24 h", day],
    ["X-Rate-Limit-Interval", "15 mins", 900_000],
    ["X-Rate-Limit-Interval", "0.3 s", 300],
    ["X-Rate-Limit-Duration", "1", 1_000],
    ["X-Rate-Limit-Window", "60s", 60_000],
  ])("reads %s: %s as %d ms", (name, value, windowMs) => {
    expectRates({ ...limit, [name]: value }, { limit: 100, policyWindowMs: windowMs });
  });

  it.each(["", "0", "0s", "-1", "soon", "1 month", "5 parsecs", "1e3", "60;"])(
    "takes the window %j for absent",
    (value) => {
      expectRates({ ...limit, "X-RateLimit-Window": value }, { limit: 100 });
    },
  );
});

describe("parseRateLimit, other names", () => {
  it.each<[string, Fields, Expected]>([
    [
      "HubSpot, the day nearer to its end",
      {
        "X-HubSpot-RateLimit-Interval-Milliseconds": "10000",
        "X-HubSpot-RateLimit-Max": "150",
        "X-HubSpot-RateLimit-Remaining": "149",
        "X-HubSpot-RateLimit-Daily": "250000",
        "X-HubSpot-RateLimit-Daily-Remaining": "1000",
      },
      { limit: 250_000, remaining: 1_000, policyWindowMs: day },
    ],
    [
      "HubSpot, the second",
      { "X-HubSpot-RateLimit-Secondly": "15", "X-HubSpot-RateLimit-Secondly-Remaining": "14" },
      { limit: 15, remaining: 14, policyWindowMs: 1_000 },
    ],
    [
      "Discogs",
      { "X-Discogs-Ratelimit": "60", "X-Discogs-Ratelimit-Used": "1", "X-Discogs-Ratelimit-Remaining": "59" },
      { limit: 60, remaining: 59 },
    ],
    [
      "Discogs, used only",
      { "X-Discogs-Ratelimit": "60", "X-Discogs-Ratelimit-Used": "60" },
      { limit: 60, remaining: 0 },
    ],
    [
      "Sentry",
      {
        "X-Sentry-Rate-Limit-Limit": "40",
        "X-Sentry-Rate-Limit-Remaining": "39",
        "X-Sentry-Rate-Limit-Reset": String(nowSeconds + 1),
        "X-Sentry-Rate-Limit-ConcurrentLimit": "25",
        "X-Sentry-Rate-Limit-ConcurrentRemaining": "0",
      },
      { limit: 40, remaining: 39, resetMs: 1_000 },
    ],
    [
      "Fitbit",
      { "Fitbit-Rate-Limit-Limit": "150", "Fitbit-Rate-Limit-Remaining": "0", "Fitbit-Rate-Limit-Reset": "1478" },
      { limit: 150, remaining: 0, resetMs: 1_478_000 },
    ],
    [
      "Brevo",
      { "x-sib-ratelimit-limit": "100", "x-sib-ratelimit-remaining": "99", "x-sib-ratelimit-reset": "30" },
      { limit: 100, remaining: 99, resetMs: 30_000 },
    ],
    [
      "Amazon MWS",
      {
        "x-mws-quota-max": "3600.0",
        "x-mws-quota-remaining": "10.0",
        "x-mws-quota-resetsOn": "Sun, 01 Mar 2026 00:07:58 GMT",
      },
      { limit: 3_600, remaining: 10, resetMs: 478_000 },
    ],
    ["Amazon's partners", { "x-amzn-RateLimit-Limit": "5.0" }, { limit: 5, policyWindowMs: 1_000 }],
    ["Amazon's partners, slow", { "x-amzn-RateLimit-Limit": "0.0167" }, { limit: 1, policyWindowMs: 59_881 }],
    [
      "Etsy",
      {
        "x-limit-per-second": "10",
        "x-remaining-this-second": "9",
        "x-limit-per-day": "10000",
        "x-remaining-today": "500",
      },
      { limit: 10_000, remaining: 500, policyWindowMs: day },
    ],
    ["Azure", { "x-ms-ratelimit-remaining-subscription-reads": "11999" }, { remaining: 11_999 }],
    [
      "Azure, the least of several",
      {
        "x-ms-ratelimit-remaining-subscription-reads": "11999",
        "x-ms-ratelimit-remaining-subscription-writes": "1199",
        "x-ms-ratelimit-remaining-resource":
          "Microsoft.Compute/HighCostGet3Min;159,Microsoft.Compute/HighCostGet30Min;1269",
      },
      { remaining: 159, policyWindowMs: 180_000 },
    ],
    [
      "Dataverse, whose time that remains is no number of requests",
      {
        "x-ms-ratelimit-burst-remaining-xrm-requests": "5999",
        "x-ms-ratelimit-time-remaining-xrm-requests": "1,199.93",
      },
      { remaining: 5_999 },
    ],
    ["ip-api.com", { "X-Rl": "44", "X-Ttl": "60" }, { remaining: 44, resetMs: 60_000 }],
    ["ip-api.com, empty", { "X-Ttl": "7", "X-Rl": "0" }, { remaining: 0, resetMs: 7_000 }],
    ["a bare limit", { "X-Rate-Limit": "700", "X-Rate-Limit-Remaining": "699" }, { limit: 700, remaining: 699 }],
    ["Max", { "X-RateLimit-Max": "50", "X-RateLimit-Remaining": "49" }, { limit: 50, remaining: 49 }],
    [
      "Remain and a window",
      {
        "X-Ratelimit-Limit": "600",
        "X-Ratelimit-Remain": "599",
        "X-Ratelimit-Reset": String(nowSeconds + 300),
        "X-Ratelimit-Window": "5m",
      },
      { limit: 600, remaining: 599, resetMs: 300_000, policyWindowMs: 300_000 },
    ],
    [
      "Yelp",
      {
        "RateLimit-DailyLimit": "5000",
        "RateLimit-Remaining": "4999",
        "RateLimit-ResetTime": "2026-03-02T00:00:00+00:00",
      },
      { limit: 5_000, remaining: 4_999, resetMs: day, policyWindowMs: day },
    ],
    [
      "GitLab",
      {
        "RateLimit-Limit": "60",
        "RateLimit-Name": "throttle_authenticated_web",
        "RateLimit-Observed": "67",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": String(nowSeconds + 10),
        "RateLimit-ResetTime": "Sun, 01 Mar 2026 00:00:10 GMT",
        "Retry-After": "10",
      },
      { limit: 60, remaining: 0, resetMs: 10_000, retryAfterMs: 10_000 },
    ],
    [
      "Ticketmaster",
      {
        "Rate-Limit": "5000",
        "Rate-Limit-Available": "4723",
        "Rate-Limit-Over": "0",
        "Rate-Limit-Reset": String(nowMs + 9),
      },
      { limit: 5_000, remaining: 4_723, resetMs: 9 },
    ],
    [
      "Qiita",
      { "Rate-Limit": "60", "Rate-Remaining": "0", "Rate-Reset": String(nowSeconds + 5) },
      { limit: 60, remaining: 0, resetMs: 5_000 },
    ],
    [
      "Fastly",
      { "Fastly-RateLimit-Remaining": "877", "Fastly-RateLimit-Reset": String(nowSeconds + 60) },
      { remaining: 877, resetMs: 60_000 },
    ],
    [
      "BigCommerce",
      {
        "X-Rate-Limit-Requests-Left": "149",
        "X-Rate-Limit-Requests-Quota": "150",
        "X-Rate-Limit-Time-Reset-Ms": "3000",
        "X-Rate-Limit-Time-Window-Ms": "5000",
      },
      { limit: 150, remaining: 149, resetMs: 3_000, policyWindowMs: 5_000 },
    ],
    [
      "Zendesk",
      { "Zendesk-RateLimit-Endpoint": "total=100; remaining=99; resets=45" },
      { limit: 100, remaining: 99, resetMs: 45_000 },
    ],
    ["Xero", { "X-DayLimit-Remaining": "4999", "X-MinLimit-Remaining": "0" }, { remaining: 0, policyWindowMs: 60_000 }],
    [
      "football-data.org",
      { "X-Requests-Available-Minute": "9", "X-RequestCounter-Reset": "45" },
      { remaining: 9, resetMs: 45_000, policyWindowMs: 60_000 },
    ],
    [
      "Freshdesk",
      { "X-RateLimit-Total": "5000", "X-RateLimit-Remaining": "4999", "X-RateLimit-Used-CurrentRequest": "1" },
      { limit: 5_000, remaining: 4_999 },
    ],
    [
      "Spring Cloud Gateway",
      { "X-RateLimit-Remaining": "9", "X-RateLimit-Burst-Capacity": "20", "X-RateLimit-Replenish-Rate": "10" },
      { limit: 20, remaining: 9 },
    ],
    [
      "AspNetCoreRateLimit, whose limit is a window",
      {
        "X-Rate-Limit-Limit": "1d",
        "X-Rate-Limit-Remaining": "9132",
        "X-Rate-Limit-Reset": "2026-03-01T12:00:00.0000000Z",
      },
      { remaining: 9_132, resetMs: 43_200_000, policyWindowMs: day },
    ],
    [
      "a vendor nobody has heard of",
      { "X-Acme-RateLimit-Limit": "5", "X-Acme-RateLimit-Remaining": "4" },
      { limit: 5, remaining: 4 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expectRates(headers, expected);
  });
});

describe("parseRateLimit, a window in the place of the limit", () => {
  it("is absent when it is zero", () => {
    expectRates({ "X-Rate-Limit-Limit": "0ms", "X-Rate-Limit-Remaining": "5" }, { remaining: 5 });
  });
});

describe("parseRateLimit, waits", () => {
  it.each<[string, Fields, number]>([
    ["Retry-After-Ms", { "retry-after-ms": "1500.1", "Retry-After": "9" }, 1_501],
    ["X-Retry-After in seconds", { "X-Retry-After": "3" }, 3_000],
    ["X-Retry-After as Unix time", { "X-Retry-After": String(nowSeconds + 4) }, 4_000],
    ["X-RateLimit-Retry-After", { "X-RateLimit-Retry-After": "12" }, 12_000],
    ["Bucket4j's name", { "X-Rate-Limit-Retry-After-Seconds": "59" }, 59_000],
    ["Cosmos DB's name", { "x-ms-retry-after-ms": "9" }, 9],
    ["WooCommerce's name", { "RateLimit-Retry-After": "28" }, 28_000],
    ["Traefik's name", { "X-Retry-In": "1.5s" }, 1_500],
    ["zero", { "Retry-After": "0" }, 0],
    ["the past", { "Retry-After": "Sat, 28 Feb 2026 00:00:00 GMT" }, 0],
    ["the first that asks for some time", { "retry-after-ms": "0", "Retry-After": "5" }, 5_000],
    ["more than fits", { "retry-after-ms": "9".repeat(20) }, Number.MAX_SAFE_INTEGER],
  ])("reads %s", (_title, headers, retryAfterMs) => {
    expectRates(headers, { retryAfterMs });
  });
});
