import fc from "fast-check";
import { type Duration, type Limits, loadPolicy, type Rate } from "politely";
import { expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { hostWords, limitWords } from "../../src/check/limitWords.js";
import { durationMs } from "../../src/policy/rateParts.js";

const cases: readonly (readonly [limits: Limits, words: readonly string[]])[] = [
  [{}, ["no limit on the pace"]],
  [{ enabled: false, rate: "1/s" }, ["no limit: the entry is turned off (enabled: false)"]],
  [{ minDelay: 0 }, ["no limit on the pace"]],
  [{ minDelay: "1.5s" }, ["at least 1.5 s between two starts"]],
  [{ minDelay: 12_345 }, ["at least 12.345 s between two starts"]],
  [{ minDelay: "90 s" }, ["at least 1 min 30 s between two starts"]],
  [{ rate: "1/s" }, ["on average 1 start per second, at most 1 at once"]],
  [{ rate: "60/min", burst: 5 }, ["on average 60 starts per minute, at most 5 at once"]],
  [{ rate: { count: 0.5, per: "1h" } }, ["on average 0.5 starts per hour, at most 1 at once"]],
  [{ rate: "2 / 3 secs" }, ["on average 2 starts in 3 s, at most 1 at once"]],
  [{ window: "1/3s" }, ["at most 1 start in any 3 s"]],
  [{ window: "2.5/s" }, ["at most 5 starts in any 2 s"]],
  [{ window: ["10000/day", "1/250ms"] }, ["at most 10,000 starts in any day", "at most 1 start in any 250 ms"]],
  [
    { quota: { count: 500, per: "month", timeZone: "Asia/Tokyo" }, concurrency: 2 },
    ["at most 500 starts each month of the calendar (Asia/Tokyo)", "at most 2 in flight at once"],
  ],
  [
    { adaptive: { min: "1/min", max: "3/s" } },
    [
      "slows down by what the site answers, never faster than 3 starts per second, never slower than 1 start per minute",
    ],
  ],
  [
    { rate: "1/s", backoff: "none", cooldown: ["10s", "20s"], countFrom: "answer" },
    [
      "on average 1 start per second, at most 1 at once",
      "gap and windows run from the answer of a request",
      "does not back off after server errors",
      "stays away 10 s, 20 s after a 429 without Retry-After",
    ],
  ],
  [
    {
      rate: "1/s",
      backoff: { kind: "exponential", base: "1s", max: "1s", jitter: 0.5 },
      maxWait: Number.POSITIVE_INFINITY,
    },
    [
      "on average 1 start per second, at most 1 at once",
      "stays away 1 s after server errors (exponential, up to 50 % longer at random)",
      "a request waits at most for ever",
    ],
  ],
];

it.each(cases)("says %j in words", (limits, words) => {
  expect(() => loadPolicy({ default: limits })).not.toThrow();
  expect(limitWords(limits)).toEqual(words);
});

it("says what stands without being given, and only that", () => {
  expect(hostWords({ rate: "1/s", backoff: "exponential" })).toEqual([
    "on average 1 start per second, at most 1 at once",
    "stays away 5 s, 10 s … 1 min after server errors (exponential)",
    "stays away 1 min after a 429 without Retry-After, by default",
    "at most 100,000 requests wait, by default",
    "a place not given back is free again after 10 min, by default",
  ]);
});

const unitMs = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const unit = fc.constantFrom(...(Object.keys(unitMs) as (keyof typeof unitMs)[]));
const decimal = fc
  .tuple(fc.integer({ min: 1, max: 99 }), fc.constantFrom("", ".5", ".25", "e1"))
  .map(([whole, rest]) => whole + rest);

it("reads every rate and duration that the library takes", () => {
  fc.assert(
    fc.property(decimal, decimal, unit, fc.constantFrom("", " "), (count, times, per, blank) => {
      const minDelay = `${times}${blank}${per}` as Duration;
      const rate = `${count}${blank}/${blank}${times}${blank}${per}` as Rate;
      const limits: Limits = { rate, window: `${count}/${times}${per}` as Rate, minDelay };
      loadPolicy({ default: limits });
      expect(limitWords(limits).join("\n")).not.toMatch(/NaN|undefined|Infinity| 0 ms/);
      expect(durationMs(minDelay)).toBeCloseTo(Number(times) * unitMs[per], 6);
    }),
    seeded(300),
  );
});
