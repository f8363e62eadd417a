import { describe, expect, it } from "vitest";
import { parseRateLimit, type RateLimit, type RateLimitOptions } from "../../../src/http/headers/index.js";

type Fields = Readonly<Record<string, string | string[] | number>>;

const nowMs = Date.UTC(2026, 2, 1);
const nowSeconds = nowMs / 1_000;

/** What an answer says, without what it does not say. */
function read(headers: Fields, options?: RateLimitOptions, atMs = nowMs): Partial<RateLimit> {
  return Object.fromEntries(
    Object.entries(parseRateLimit(headers, atMs, options)).filter(([, value]) => value !== undefined),
  );
}

const list = { RateLimit: '"a";r=5;t=6', "RateLimit-Policy": '"a";q=10;w=60' };
const triple = { "RateLimit-Limit": "100", "RateLimit-Remaining": "50", "RateLimit-Reset": "30" };
const vendor = { "X-Shopify-Shop-Api-Call-Limit": "30/40" };
const common = { "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "20" };

describe("parseRateLimit, which family", () => {
  it("takes RateLimit first, then RateLimit-*, then vendors, then X-RateLimit-*", () => {
    expect(read({ ...common, ...vendor, ...triple, ...list })).toMatchObject({
      limit: 10,
      remaining: 5,
      resetMs: 6_000,
    });
    expect(read({ ...common, ...vendor, ...triple })).toEqual({ limit: 100, remaining: 50, resetMs: 30_000 });
    expect(read({ ...common, ...vendor })).toEqual({ limit: 40, remaining: 10 });
    expect(read(common)).toEqual({ limit: 60, remaining: 3, resetMs: 20_000 });
  });

  it.each([
    "oops;;",
    '"a";r=-1;t=6',
    '"a";r=5;t=-6',
    '"a";r=5.0;t=6',
    '"a";r=5;t="6"',
    '"a";t=6',
    '"a"',
    "5",
    '("a");r=5',
    '"a";r=5;t=6, "b"',
    '"a";r=5;t=6,',
    "limit=10, remaining=x, reset=1",
    'limit="10", remaining=1, reset=1',
    "limit=10, remaining=(1), reset=1",
    "reset=1",
    "Limit=10",
    "",
  ])("skips the malformed RateLimit %j", (value) => {
    expect(read({ RateLimit: value, ...triple })).toEqual({ limit: 100, remaining: 50, resetMs: 30_000 });
    expect(read({ RateLimit: value })).toEqual({});
  });

  it.each<[string, Fields]>([
    ["a limit", { ...triple, "RateLimit-Limit": "many" }],
    ["a rest", { ...triple, "RateLimit-Remaining": "n/a" }],
    ["all", { "RateLimit-Limit": "?", "RateLimit-Remaining": "?", "RateLimit-Reset": "?" }],
    ["no more than a reset", { "RateLimit-Reset": "30" }],
  ])("skips a family with %s that cannot be read, if another is whole", (_title, fields) => {
    expect(read({ ...fields, ...common })).toEqual({ limit: 60, remaining: 3, resetMs: 20_000 });
  });

  it("takes what can be read of a family when no other is whole", () => {
    expect(read({ ...triple, "RateLimit-Remaining": "n/a" })).toEqual({ limit: 100, resetMs: 30_000 });
    expect(read({ ...common, "X-RateLimit-Limit": "?" })).toEqual({ remaining: 3, resetMs: 20_000 });
    expect(read({ "RateLimit-Reset": "30" })).toEqual({ resetMs: 30_000 });
  });

  it("takes a reset that cannot be read, and an empty field, for absent", () => {
    expect(read({ ...triple, "RateLimit-Reset": "soon", ...common })).toEqual({ limit: 100, remaining: 50 });
    expect(read({ ...triple, "RateLimit-Limit": " ", ...common })).toEqual({ remaining: 50, resetMs: 30_000 });
  });

  it("takes negative numbers for unknown, not for empty", () => {
    expect(read({ ...triple, "RateLimit-Remaining": "-1" })).toEqual({ limit: 100, resetMs: 30_000 });
    expect(read({ ...common, "X-RateLimit-Limit": "-1" })).toEqual({ remaining: 3, resetMs: 20_000 });
    expect(read({ RateLimit: "limit=10, remaining=-1, reset=-5" })).toEqual({ limit: 10 });
    expect(read({ ...common, "X-RateLimit-Remaining": "-1", "X-RateLimit-Used": "61" })).toEqual({
      limit: 60,
      resetMs: 20_000,
    });
  });

  it("reads both spellings of the common family, the one without a hyphen first", () => {
    const hyphened = { "X-Rate-Limit-Limit": "7", "X-Rate-Limit-Remaining": "6", "X-Rate-Limit-Reset": "5" };
    expect(read(hyphened)).toEqual({ limit: 7, remaining: 6, resetMs: 5_000 });
    expect(read({ ...hyphened, ...common })).toEqual({ limit: 60, remaining: 3, resetMs: 20_000 });
    expect(read({ "X-RateLimit-Limit": "60", "X-Rate-Limit-Remaining": "6" })).toEqual({ limit: 60, remaining: 6 });
  });

  it.each(["1", "30", "0.5", "0, 7"])("ignores the quotas of a cached answer with Age %s, and not its wait", (Age) => {
    for (const family of [list, triple, vendor, common]) expect(read({ ...family, Age })).toEqual({});
    expect(read({ ...common, Age, "Retry-After": "9" })).toEqual({ retryAfterMs: 9_000 });
  });

  it.each(["0", "", "-1", "old"])("does not take an answer with Age %j for cached", (Age) => {
    expect(read({ ...common, Age })).toEqual({ limit: 60, remaining: 3, resetMs: 20_000 });
  });
});

describe("parseRateLimit, RateLimit as a list", () => {
  it.each<[string, Fields, object]>([
    ["an item without reset", { RateLimit: '"default";r=999;pk=:dHJpYWwxMjEzMjM=:' }, { remaining: 999 }],
    ["blanks after semicolons", { RateLimit: '"default"; r=5; t=0' }, { remaining: 5, resetMs: 0 }],
    ["a name as token", { RateLimit: "default;r=5;t=1" }, { remaining: 5, resetMs: 1_000 }],
    [
      "numbers of a reset as seconds, never as Unix time",
      { RateLimit: '"a";r=1;t=1700000000' },
      { remaining: 1, resetMs: 1.7e12 },
    ],
    [
      "quota and window in the item itself",
      { RateLimit: '"a";r=1;t=2;q=9;w=3' },
      { limit: 9, remaining: 1, resetMs: 2_000, policyWindowMs: 3_000 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expect(read(headers)).toEqual(expected);
  });

  it("reads several lines and parameters nobody knows", () => {
    const result = read({
      RateLimit: ['"a";r=9;t=1;acme=?1', '"b";r=2;t=33'],
      "RateLimit-Policy": ['"a";q=10;w=1;pk=:cHsdsRa894==:', '"b";q=100;w=60;comment="x, y"'],
    });
    expect(result).toEqual({
      limit: 100,
      remaining: 2,
      resetMs: 33_000,
      policyWindowMs: 60_000,
      policies: [
        { name: "a", limit: 10, windowMs: 1_000 },
        { name: "b", limit: 100, windowMs: 60_000 },
      ],
      buckets: [
        { name: "a", limit: 10, remaining: 9, resetMs: 1_000, policyWindowMs: 1_000 },
        { name: "b", limit: 100, remaining: 2, resetMs: 33_000, policyWindowMs: 60_000 },
      ],
    });
  });

  it("matches policies by name only", () => {
    expect(read({ RateLimit: '"a";r=5;t=6', "RateLimit-Policy": '"b";q=10;w=60' })).toMatchObject({ remaining: 5 });
    expect(read({ RateLimit: '"a";r=5;t=6', "RateLimit-Policy": '"b";q=10;w=60' })).not.toHaveProperty("limit");
    expect(read({ RateLimit: '"a";r=5;t=6', "RateLimit-Policy": "10;w=60" })).not.toHaveProperty("limit");
  });

  it("never chooses a bucket that does not count requests", () => {
    const policy =
      '"bytes";q=1000000;w=60;qu="content-bytes", "calls";q=100;w=60;qu="requests", "open";q=5;qu="concurrent-requests"';
    const result = read({ RateLimit: '"bytes";r=0;t=60, "calls";r=50;t=30, "open";r=0', "RateLimit-Policy": policy });
    expect(result).toMatchObject({ limit: 100, remaining: 50, resetMs: 30_000 });
    expect(result.buckets?.map(({ name, unit }) => [name, unit])).toEqual([
      ["bytes", "content-bytes"],
      ["calls", undefined],
      ["open", "concurrent-requests"],
    ]);
    expect(result.policies?.[0]).toEqual({ name: "bytes", limit: 1_000_000, windowMs: 60_000, unit: "content-bytes" });
    expect(read({ RateLimit: '"bytes";r=0;t=60', "RateLimit-Policy": policy, ...common })).toMatchObject({ limit: 60 });
    expect(read({ RateLimit: '"bytes";r=0;t=60', "RateLimit-Policy": policy })).not.toHaveProperty("remaining");
  });
});

describe("parseRateLimit, RateLimit as a dictionary, and the triple", () => {
  it.each<[string, Fields, object]>([
    [
      "a reset as seconds, never as Unix time",
      { RateLimit: "limit=1, remaining=1, reset=1700000000" },
      { limit: 1, remaining: 1, resetMs: 1.7e12 },
    ],
    [
      "another order and other keys",
      { RateLimit: "reset=5, remaining=3;x=1, policy=a, limit=9" },
      { limit: 9, remaining: 3, resetMs: 5_000 },
    ],
    [
      "semicolons in place of commas",
      { RateLimit: "limit=9; remaining=3; reset=5" },
      { limit: 9, remaining: 3, resetMs: 5_000 },
    ],
    ["without a reset", { RateLimit: "limit=9, remaining=3" }, { limit: 9, remaining: 3 }],
    [
      "a reset with decimals",
      { RateLimit: "limit=9, remaining=3, reset=0.005" },
      { limit: 9, remaining: 3, resetMs: 5 },
    ],
    [
      "the triple with Unix time",
      { ...triple, "RateLimit-Reset": String(nowSeconds + 9) },
      { limit: 100, remaining: 50, resetMs: 9_000 },
    ],
    [
      "the triple with numbers",
      { "RateLimit-Limit": 100, "RateLimit-Remaining": 0, "RateLimit-Reset": 1.5 },
      { limit: 100, remaining: 0, resetMs: 1_500 },
    ],
    [
      "the triple with a window on the limit",
      { ...triple, "RateLimit-Limit": "100;w=21600" },
      { limit: 100, remaining: 50, resetMs: 30_000, policyWindowMs: 21_600_000 },
    ],
  ])("reads %s", (_title, headers, expected) => {
    expect(read(headers)).toEqual(expected);
  });

  it.each<[string, string, number | undefined]>([
    ["the policy with the same quota", "10;w=1, 100;w=60, 1000;w=3600", 60_000],
    ["the only policy, whatever its quota", "10;w=1", 1_000],
    ["none of several with other quotas", "10;w=1, 50;w=60", undefined],
    ["the policy of a later draft with the same quota", '"a";q=10;w=1, "b";q=100;w=60', 60_000],
    ["the only policy that counts requests", '"a";q=5;w=9;qu="content-bytes", "b";q=7;w=60', 60_000],
    ["nothing from a policy without window", "100", undefined],
    ["nothing from a window of zero", "100;w=0", undefined],
    ["nothing from a malformed policy", "100;w=60;;", undefined],
  ])("takes the window from %s", (_title, policy, windowMs) => {
    const dictionary = { RateLimit: "limit=100, remaining=50, reset=30" };
    for (const family of [dictionary, triple]) {
      const { policyWindowMs } = parseRateLimit({ ...family, "RateLimit-Policy": policy }, nowMs);
      expect(policyWindowMs).toBe(windowMs);
    }
  });

  it("finds policies in RateLimit-Limit behind its first member", () => {
    expect(read({ ...triple, "RateLimit-Limit": '100, 10;w=1;comment="a, b", 100;w=60' })).toEqual({
      limit: 100,
      remaining: 50,
      resetMs: 30_000,
      policyWindowMs: 60_000,
      policies: [
        { limit: 10, windowMs: 1_000 },
        { limit: 100, windowMs: 60_000 },
      ],
    });
  });

  it("lists policies that stand alone, and leaves out what is none", () => {
    expect(read({ "RateLimit-Policy": '"a";q=1;w=2, "b";w=3, (1 2), 5;w=6, "c";q=-1, "d";q=7' })).toEqual({
      policies: [
        { name: "a", limit: 1, windowMs: 2_000 },
        { limit: 5, windowMs: 6_000 },
        { name: "d", limit: 7 },
      ],
    });
  });
});

describe("parseRateLimit, several buckets", () => {
  const fields = (rows: readonly string[]): Fields => ({
    RateLimit: rows.map((row, i) => `"${i}";${row.split(" ")[0]}`).join(", "),
    "RateLimit-Policy": rows.map((row, i) => `"${i}";q=${row.split(" ")[1]}`).join(", "),
  });

  it.each<[string, string[], number]>([
    ["the empty one with the longest reset", ["r=0;t=5 10", "r=0;t=50 10", "r=1;t=500 10", "r=0;t=49 10"], 1],
    ["the empty one that has a reset", ["r=0 10", "r=0;t=0 10"], 1],
    ["the one with the smallest share left", ["r=50;t=1 100", "r=9;t=1 1000", "r=8;t=1 10"], 1],
    ["of equal shares the smaller rest", ["r=50;t=1 100", "r=5;t=1 10"], 1],
    ["of equals the first", ["r=5;t=1 10", "r=5;t=9 10"], 0],
    ["the one whose limit is known", ["r=1;t=1 x", "r=90;t=9 100"], 1],
    ["without limits the smallest rest", ["r=7;t=1 x", "r=2;t=9 x", "r=3;t=9 x"], 1],
  ])("chooses %s", (_title, rows, index) => {
    const { remaining, resetMs, buckets } = parseRateLimit(fields(rows), nowMs);
    expect(buckets?.[index]).toMatchObject({ remaining, resetMs });
    expect(buckets?.filter((bucket) => bucket.remaining === remaining && bucket.resetMs === resetMs)).toHaveLength(1);
  });
});

describe("parseRateLimit, the clock", () => {
  // The server's clock is an hour ahead of ours.
  const serverDate = "Sun, 01 Mar 2026 01:00:00 GMT";
  const at = nowSeconds + 3_600 + 30;

  it.each([String(at), String(at * 1_000), "Sun, 01 Mar 2026 01:00:30 GMT", "2026-03-01T01:00:30Z"])(
    "measures the reset %s from the Date of the answer",
    (reset) => {
      expect(read({ ...common, "X-RateLimit-Reset": reset, Date: serverDate })).toMatchObject({ resetMs: 30_000 });
      expect(read({ ...common, "X-RateLimit-Reset": reset })).toMatchObject({ resetMs: 3_630_000 });
      expect(read({ ...common, "X-RateLimit-Reset": reset, Date: "then" })).toMatchObject({ resetMs: 3_630_000 });
      expect(read({ ...common, "X-RateLimit-Reset": reset }, {}, Number.NaN)).not.toHaveProperty("resetMs");
    },
  );

  it("does not adjust delays", () => {
    expect(read({ ...common, Date: serverDate })).toMatchObject({ resetMs: 20_000 });
    expect(read({ ...common, "X-RateLimit-Reset": "1m", Date: serverDate })).toMatchObject({ resetMs: 60_000 });
    expect(read({ ...common, "Retry-After": "5", Date: serverDate })).toMatchObject({ retryAfterMs: 5_000 });
  });

  it("lets Reset-After decide over Reset, unless it is unusable", () => {
    expect(read({ ...common, "X-RateLimit-Reset-After": "1.25" })).toMatchObject({ resetMs: 1_250 });
    expect(read({ ...common, "X-RateLimit-Reset-After": "-1" })).toMatchObject({ resetMs: 20_000 });
    expect(read({ ...common, "X-RateLimit-Reset-After": "1700000000" })).toMatchObject({ resetMs: 1.7e12 });
  });

  it("takes small numbers for milliseconds when told to, and no others", () => {
    const ms = { resetUnit: "ms" } as const;
    expect(read({ ...common, "X-RateLimit-Reset": "1500" }, ms)).toMatchObject({ resetMs: 1_500 });
    expect(read({ ...common, "X-RateLimit-Reset": "1.5" }, ms)).toMatchObject({ resetMs: 2 });
    expect(read({ ...common, "X-RateLimit-Reset": String(at) }, ms)).toMatchObject({ resetMs: 3_630_000 });
    expect(read({ ...common, "X-RateLimit-Reset": "2s" }, ms)).toMatchObject({ resetMs: 2_000 });
    expect(read({ ...triple }, ms)).toMatchObject({ resetMs: 30 });
    expect(read({ ...list }, ms)).toMatchObject({ resetMs: 6_000 });
    expect(read({ ...common }, { resetUnit: "s" })).toMatchObject({ resetMs: 20_000 });
  });
});
