import { describe, expect, it } from "vitest";
import { parseRateLimit, parseRetryAfter } from "../../../src/http/headers/index.js";

/** A Tuesday, noon. */
const NOW = Date.UTC(2026, 8, 15, 12, 0, 0);
const MAX = Number.MAX_SAFE_INTEGER;
const SEC = 1_000;
const MIN = 60_000;
const HOUR = 3_600_000;

describe("Retry-After", () => {
  it.each<[string, number | null]>([
    ["  7\t", 7 * SEC],
    ["\t", null],
    ["007", 7 * SEC],
    ["0", 0],
    ["0.0", 0],
    ["1.0001", 1_001],
    ["0.00001", 1],
    ["2.", null],
    [".5", null],
    ["1.2.3", null],
    ["+3", null],
    ["-0", null],
    ["1e2", null],
    ["0x10", null],
    ["10s", null],
    ["10 seconds", null],
    ["٣", null],
    ["１０", null],
    ["1 0", null],
    ["9007199254740", 9_007_199_254_740_000],
    ["9007199254741", MAX],
    ["99999999999999999999999999", MAX],
    ["5,9 ,7", 9 * SEC],
    ["5, 9.5", null],
    ["5,", null],
    ["5, Tue, 15 Sep 2026 12:00:10 GMT", null],
    ["Tue, 15 Sep 2026 12:00:10 GMT", 10 * SEC],
    // The weekday is not looked at.
    ["Mon, 15 Sep 2026 12:00:10 GMT", 10 * SEC],
    ["Tue, 15 Sep 2026 12:00:00 GMT", 0],
    ["Tue, 15 Sep 2026 11:00:00 GMT", 0],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
    ["Tue, 15 Sep 2026 23:59:60 GMT", 12 * HOUR],
    ["Tue, 15 Sep 2026 12:00:61 GMT", null],
    ["Tue, 15 Sep 2026 24:00:00 GMT", null],
    ["Tue, 15 Sep 2026 12:60:00 GMT", null],
    ["Tue, 31 Sep 2026 12:00:00 GMT", null],
    ["Sun, 29 Feb 2026 12:00:00 GMT", null],
    ["Tue, 29 Feb 2028 12:00:00 GMT", Date.UTC(2028, 1, 29, 12) - NOW],
    ["Tue, 29 Feb 2100 12:00:00 GMT", null],
    ["Tue, 00 Sep 2026 12:00:00 GMT", null],
    ["Tue, 15 Sep 2026 12:00:10 UTC", 10 * SEC],
    ["Tue, 15 Sep 2026 14:00:10 +0200", 10 * SEC],
    ["Tue, 15 Sep 2026 06:30:10 -0530", 10 * SEC],
    ["Tuesday, 15-Sep-26 12:00:10 GMT", 10 * SEC],
    // 2076 is 50 years ahead, 2077 is more than that.
    ["Tuesday, 15-Sep-76 12:00:00 GMT", Date.UTC(2076, 8, 15, 12) - NOW],
    ["Tuesday, 15-Sep-77 12:00:00 GMT", 0],
    ["Tuesday, 15-Sep-99 12:00:00 GMT", 0],
    ["Tue Sep 15 12:00:10 2026", 10 * SEC],
    ["Thu Oct  1 12:00:00 2026", 16 * 24 * HOUR],
    ["2026-09-15T12:00:10Z", 10 * SEC],
    ["2026-09-15T14:00:10+02:00", 10 * SEC],
    ["2026-09-15T12:00:10.250Z", 10_250],
    ["2026-02-31T12:00:00Z", null],
    ["2026-09-15", null],
    ["2", 2 * SEC],
    ["September", null],
    ["15 Sep", null],
    ["null", null],
    ["NaN", null],
    ["Infinity", null],
    ["soon", null],
  ])("%j is %j", (value, expected) => expect(parseRetryAfter(value, NOW)).toBe(expected));
});

type Fields = Record<string, string | string[]>;

describe("rate-limit fields", () => {
  it.each<[string, Fields, object]>([
    // Which family.
    [
      "the list form beats the triple",
      { RateLimit: '"a";r=3;t=4', "RateLimit-Remaining": "9" },
      { remaining: 3, resetMs: 4 * SEC },
    ],
    [
      "a malformed list is skipped",
      { RateLimit: '"a";r=-3;t=4', "RateLimit-Limit": "10", "RateLimit-Remaining": "9", "RateLimit-Reset": "5" },
      { limit: 10, remaining: 9, resetMs: 5 * SEC },
    ],
    [
      "the dictionary form",
      { RateLimit: "limit=10, remaining=4, reset=50" },
      { limit: 10, remaining: 4, resetMs: 50 * SEC },
    ],
    [
      "a vendor beats X-RateLimit",
      { "X-Shopify-Shop-Api-Call-Limit": "39/40", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "5" },
      { limit: 40, remaining: 1 },
    ],
    [
      "the triple beats X-RateLimit",
      { "RateLimit-Limit": "10", "RateLimit-Remaining": "2", "RateLimit-Reset": "3", "X-RateLimit-Remaining": "7" },
      { remaining: 2, limit: 10 },
    ],
    [
      "nothing from a cache",
      { Age: "1", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0" },
      { limit: undefined, remaining: undefined },
    ],
    [
      "an Age of 0 is no cache",
      { Age: "0", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0" },
      { limit: 5, remaining: 0 },
    ],
    ["names in any case", { "x-RATElimit-LIMIT": "5", "X-ratelimit-REMAINING": "4" }, { limit: 5, remaining: 4 }],
    [
      "X-Rate-Limit as well",
      { "X-Rate-Limit-Limit": "5", "X-Rate-Limit-Remaining": "4", "X-Rate-Limit-Reset": "30" },
      { limit: 5, remaining: 4, resetMs: 30 * SEC },
    ],
    // List form.
    [
      "policies by name",
      { "RateLimit-Policy": '"b";q=100;w=60, "h";q=1000;w=3600', RateLimit: '"h";r=10;t=100' },
      { limit: 1000, remaining: 10, resetMs: 100 * SEC, policyWindowMs: HOUR },
    ],
    [
      "several field lines are one list",
      { "RateLimit-Policy": ['"b";q=100;w=60', '"h";q=1000;w=3600'], RateLimit: ['"b";r=50;t=30', '"h";r=10;t=100'] },
      { limit: 1000, remaining: 10 },
    ],
    [
      "the empty one with the longest reset",
      { RateLimit: '"b";r=0;t=30, "h";r=0;t=900, "d";r=1;t=9999' },
      { remaining: 0, resetMs: 900 * SEC },
    ],
    [
      "bytes are no requests",
      {
        "RateLimit-Policy": '"x";q=100;w=60;qu="content-bytes", "r";q=10;w=60',
        RateLimit: '"x";r=0;t=30, "r";r=9;t=50',
      },
      { limit: 10, remaining: 9, resetMs: 50 * SEC },
    ],
    ["a decimal r is malformed", { RateLimit: '"a";r=1.5;t=4' }, { remaining: undefined }],
    [
      "parameters in any order, and unknown ones",
      { RateLimit: '"a";t=4;pk=:YQ==:;r=3' },
      { remaining: 3, resetMs: 4 * SEC },
    ],
    ["r without t", { RateLimit: '"a";r=3' }, { remaining: 3, resetMs: undefined }],
    // Dictionary and triple.
    [
      "the window whose quota equals the limit",
      { RateLimit: "limit=100, remaining=5, reset=5", "RateLimit-Policy": "100;w=60, 1000;w=3600" },
      { policyWindowMs: MIN },
    ],
    [
      "the only policy",
      { RateLimit: "limit=90, remaining=5, reset=5", "RateLimit-Policy": "100;w=60" },
      { policyWindowMs: MIN },
    ],
    [
      "none of two that do not fit",
      { RateLimit: "limit=90, remaining=5, reset=5", "RateLimit-Policy": "100;w=60, 1000;w=3600" },
      { policyWindowMs: undefined },
    ],
    [
      "a window on the limit itself",
      { "RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "76", "RateLimit-Reset": "60" },
      { limit: 100, remaining: 76, policyWindowMs: 6 * HOUR },
    ],
    [
      "policies behind the limit",
      { "RateLimit-Limit": "10, 10;w=1, 50;w=60", "RateLimit-Remaining": "9", "RateLimit-Reset": "1" },
      { limit: 10, policyWindowMs: SEC },
    ],
    // Vendors.
    ["Salesforce", { "Sforce-Limit-Info": "api-usage=18/5000" }, { limit: 5000, remaining: 4982 }],
    ["Gorgias", { "X-Gorgias-Account-Api-Call-Limit": "40/40" }, { limit: 40, remaining: 0 }],
    [
      "tokens as a suffix bind",
      {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "10",
        "x-ratelimit-reset-tokens": "6m0s",
      },
      { limit: 1000, remaining: 10, resetMs: 6 * MIN },
    ],
    [
      "a dimension in the middle",
      {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-09-15T12:01:00Z",
      },
      { limit: 50, remaining: 49, resetMs: MIN },
    ],
    [
      "two windows in one value",
      { "X-RateLimit-Limit": "200,2000", "X-RateLimit-Usage": "199,430" },
      { limit: 200, remaining: 1, policyWindowMs: 15 * MIN },
    ],
    [
      "limit and seconds in one value",
      { "X-App-Rate-Limit": "20:1,100:120", "X-App-Rate-Limit-Count": "1:1,99:120" },
      { limit: 100, remaining: 1, policyWindowMs: 2 * MIN },
    ],
    [
      "HubSpot",
      {
        "X-HubSpot-RateLimit-Max": "100",
        "X-HubSpot-RateLimit-Remaining": "20",
        "X-HubSpot-RateLimit-Interval-Milliseconds": "10000",
        "X-HubSpot-RateLimit-Daily": "250000",
        "X-HubSpot-RateLimit-Daily-Remaining": "249000",
      },
      { limit: 100, remaining: 20, policyWindowMs: 10 * SEC },
    ],
    ["Discogs", { "X-Discogs-Ratelimit": "60", "X-Discogs-Ratelimit-Remaining": "12" }, { limit: 60, remaining: 12 }],
    [
      "Fitbit",
      { "Fitbit-Rate-Limit-Limit": "150", "Fitbit-Rate-Limit-Remaining": "149", "Fitbit-Rate-Limit-Reset": "1478" },
      { limit: 150, remaining: 149, resetMs: 1_478 * SEC },
    ],
    ["X-Rl and X-Ttl", { "X-Rl": "3", "X-Ttl": "40" }, { remaining: 3, resetMs: 40 * SEC }],
    [
      "an interval with a unit",
      { "X-Rate-Limit-Limit": "10", "X-Rate-Limit-Remaining": "5", "X-Rate-Limit-Interval": "24 hours" },
      { policyWindowMs: 24 * HOUR },
    ],
    [
      "a second and a day",
      {
        "x-limit-per-second": "10",
        "x-remaining-this-second": "9",
        "x-limit-per-day": "1000",
        "x-remaining-today": "1",
      },
      { limit: 1000, remaining: 1 },
    ],
    // Resets.
    ["seconds with decimals", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "0.5" }, { resetMs: 500 }],
    [
      "just below Unix time",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "999999999" },
      { resetMs: 999_999_999 * SEC },
    ],
    [
      "Unix seconds",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": String(NOW / SEC + 9) },
      { resetMs: 9 * SEC },
    ],
    [
      "Unix seconds with decimals",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": `${NOW / SEC + 9}.25` },
      { resetMs: 9_250 },
    ],
    ["Unix milliseconds", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": String(NOW + 9) }, { resetMs: 9 }],
    ["the past is now", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1000000000" }, { resetMs: 0 }],
    [
      "a duration",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1h2m3.5s" },
      { resetMs: HOUR + 2 * MIN + 3_500 },
    ],
    ["days", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1d2h" }, { resetMs: 26 * HOUR }],
    ["milliseconds", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "12ms" }, { resetMs: 12 }],
    ["microseconds, rounded up", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "350us" }, { resetMs: 1 }],
    [
      "an HTTP-date",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "Tue, 15 Sep 2026 12:00:10 GMT" },
      { resetMs: 10 * SEC },
    ],
    [
      "an instant without seconds",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "2026-09-15T12:01Z" },
      { resetMs: MIN },
    ],
    [
      "a JavaScript Date",
      {
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Reset": "Tue Sep 15 2026 14:00:10 GMT+0200 (Central European Summer Time)",
      },
      { resetMs: 10 * SEC },
    ],
    [
      "a negative one is absent",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "-5" },
      { remaining: 1, resetMs: undefined },
    ],
    ["an empty one is absent", { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "" }, { resetMs: undefined }],
    [
      "Reset-After wins",
      { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": String(NOW / SEC + 9), "X-RateLimit-Reset-After": "2.5" },
      { resetMs: 2_500 },
    ],
    // Clock.
    [
      "instants from the Date",
      { Date: "Tue, 15 Sep 2026 11:59:00 GMT", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": String(NOW / SEC) },
      { resetMs: MIN },
    ],
    [
      "deltas not",
      { Date: "Tue, 15 Sep 2026 11:59:00 GMT", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "5" },
      { resetMs: 5 * SEC },
    ],
    [
      "a date in Retry-After from the Date",
      { Date: "Tue, 15 Sep 2026 11:59:00 GMT", "Retry-After": "Tue, 15 Sep 2026 11:59:30 GMT" },
      { retryAfterMs: 30 * SEC },
    ],
    [
      "a Date that is none is not looked at",
      { Date: "yesterday", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": String(NOW / SEC + 9) },
      { resetMs: 9 * SEC },
    ],
    // Several buckets.
    ["negative is unknown", { "X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "-1" }, { remaining: undefined }],
    // Wait.
    [
      "milliseconds first",
      { "retry-after-ms": "1500", "Retry-After": "9", "X-Retry-After": "99" },
      { retryAfterMs: 1_500 },
    ],
    ["then Retry-After", { "Retry-After": "9", "X-Retry-After": "99" }, { retryAfterMs: 9 * SEC }],
    ["then its relatives", { "X-Retry-After": "99" }, { retryAfterMs: 99 * SEC }],
    ["of the rate limit", { "X-RateLimit-Retry-After": "98" }, { retryAfterMs: 98 * SEC }],
    ["a relative in Unix time", { "X-Retry-After": String(NOW / SEC + 7) }, { retryAfterMs: 7 * SEC }],
    ["one that is unusable gives way", { "retry-after-ms": "soon", "Retry-After": "9" }, { retryAfterMs: 9 * SEC }],
  ])("%s", (_name, headers, expected) => expect(parseRateLimit(headers, NOW)).toMatchObject(expected));

  it("takes small resets for milliseconds when it is told to", () => {
    const headers = { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1500" };
    expect(parseRateLimit(headers, NOW, { resetUnit: "ms" })).toMatchObject({ resetMs: 1_500 });
  });
});
