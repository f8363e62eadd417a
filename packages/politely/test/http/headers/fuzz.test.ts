import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnswerHeaders } from "../../../src/http/headers/answerHeaders.js";
import { type AnyHeaders, parseRateLimit, type RateLimit } from "../../../src/http/headers/index.js";
import { vendorNames } from "../../../src/http/headers/vendors.js";
import { readAnswer } from "../../../src/http/readAnswer.js";
import samples from "../../fixtures/ratelimit-headers.json" with { type: "json" };
import { seeded } from "../../laws/seeded.js";

type Pairs = readonly (readonly [string, string])[];

const centuryUs = 36_525 * 86_400_000_000;
const statuses = fc.constantFrom(200, 304, 403, 404, 418, 429, 500, 503, 529, Number.NaN, -1);
const clocks = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 4e12 }) },
  { weight: 1, arbitrary: fc.double() },
);

const realNames = [
  ...new Set(samples.flatMap(({ headers }) => Object.keys(headers))),
  "X-RateLimit-Reset-After",
  "X-App-Rate-Limit-Count",
  "X-App-Rate-Limit",
  "X-RateLimit-UserRemaining",
  "x-ms-ratelimit-remaining-resource",
  "Sforce-Limit-Info",
  "Zendesk-RateLimit-Endpoint",
  "x-amzn-RateLimit-Limit",
  "X-HubSpot-RateLimit-Daily",
  "X-Rl",
  "X-Ttl",
  "retry-after-ms",
  "X-Retry-After",
  "Age",
];
const realValues = samples.flatMap(({ headers }) => Object.values(headers).flat());

const words = fc.constantFrom(
  ..."x ratelimit rate limit remaining reset after used window interval requests tokens day minute ms per - --".split(
    " ",
  ),
);
const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...realNames) },
  { weight: 2, arbitrary: fc.array(words, { maxLength: 5 }).map((parts) => parts.join("-")) },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
);
const pieces = fc.constantFrom(
  ...'0 1 9 17 99 1e9 1700000001 1700000060000 - + . , ; : / = " ( ) w= r= t= q= qu= limit= remaining= reset='.split(
    " ",
  ),
  ..."ms s m h d us µs hour Sun, Mar 2026 GMT T Z 00:00:60 2026-03-01 ?1 :aGk=: \u0000 é 😀 NaN Infinity".split(" "),
  " ",
  "\t",
  "9".repeat(40),
);
const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...realValues) },
  { weight: 3, arbitrary: fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.double().map(String) },
);

/** A whole number from `least` up to 2^53-1. */
function isWhole(number: unknown, least = 0): boolean {
  return Number.isSafeInteger(number) && (number as number) >= least;
}

function isAbsentOrWhole(number: number | undefined, least = 0): boolean {
  return number === undefined || isWhole(number, least);
}

function isSaneRateLimit(result: RateLimit): boolean {
  const { policies = [], buckets = [] } = result;
  return (
    [result, ...buckets].every(
      ({ limit, remaining, resetMs, policyWindowMs }) =>
        isAbsentOrWhole(limit) &&
        isAbsentOrWhole(remaining) &&
        isAbsentOrWhole(resetMs) &&
        isAbsentOrWhole(policyWindowMs, 1),
    ) &&
    isAbsentOrWhole(result.retryAfterMs) &&
    policies.every(({ limit, windowMs }) => isWhole(limit) && isAbsentOrWhole(windowMs, 1))
  );
}

function isSaneAnswer(answer: AnswerHeaders): boolean {
  const times = [answer.retryAfterUs, answer.resetUs];
  return (
    times.every((us) => isWhole(us) && us <= centuryUs) &&
    isWhole(answer.remaining, -1) &&
    answer.isExhausted === (answer.remaining === 0) &&
    typeof answer.field === "string"
  );
}

/** Both readers are sane. */
function isSane(headers: unknown, nowMs: number, status: number): boolean {
  const answer = readAnswer(headers as AnyHeaders, nowMs, status);
  return isSaneRateLimit(parseRateLimit(headers as AnyHeaders, nowMs)) && isSaneAnswer(answer);
}

/** Both readers say the same of fields that count requests of the host. */
function areSame(pairs: Pairs, nowMs: number, status: number): boolean {
  const names = new Set(pairs.map(([each]) => each).filter((each) => vendorNames.read(each)?.isOfHost !== false));
  names.delete("x-ratelimit-resource");
  const headers = Object.fromEntries(pairs.filter(([each]) => names.has(each)));
  const result = parseRateLimit(headers, nowMs);
  const answer = readAnswer(headers, nowMs, status);
  return (
    answer.remaining === (result.remaining ?? -1) &&
    answer.resetUs === Math.min((result.resetMs ?? 0) * 1_000, centuryUs)
  );
}

/** The same fields in every form a client may have them. */
function inForm(pairs: Pairs, form: number): unknown {
  const record = Object.fromEntries(pairs);
  if (form === 0) return record;
  if (form === 1) return pairs;
  if (form === 2) return pairs.flat();
  if (form === 3) return pairs.flat().map((text) => Buffer.from(text, "latin1"));
  if (form === 4) return new Map(pairs);
  return { get: (asked: string): unknown => record[asked] };
}

describe("reading headers, whatever they are", () => {
  it("is sane for any names and values", () => {
    const fields = fc.array(fc.tuple(name, value), { maxLength: 8 });
    fc.assert(
      fc.property(
        fields,
        fc.integer({ min: 0, max: 5 }),
        clocks,
        statuses,
        (pairs, form, nowMs, status) => isSane(inForm(pairs, form), nowMs, status) && areSame(pairs, nowMs, status),
      ),
      seeded(100_000),
    );
  });

  it("is sane for real headers with something changed", () => {
    const change = fc.record({
      field: fc.nat(),
      kind: fc.constantFrom("insert", "cut", "replace", "drop", "repeat", "swap"),
      at: fc.nat(),
      text: fc.oneof(pieces, value),
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...samples),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        statuses,
        (sample, changes, status) => {
          let pairs = Object.entries(sample.headers).map(([each, text]): [string, string] => [
            each,
            [text].flat().join(", "),
          ]);
          for (const { field, kind, at, text } of changes) {
            const index = field % Math.max(pairs.length, 1);
            const [each, before] = pairs[index] ?? ["X-RateLimit-Limit", ""];
            const place = at % (before.length + 1);
            const after = {
              insert: before.slice(0, place) + text + before.slice(place),
              cut: before.slice(0, place),
              replace: text,
              drop: "",
              repeat: `${before}, ${text}`,
              swap: pairs[at % Math.max(pairs.length, 1)]?.[1] ?? "",
            }[kind];
            pairs = pairs.map((pair, i) => (i === index ? [each, after] : pair));
          }
          const nowMs = Date.parse(sample.nowIso);
          return isSane(Object.fromEntries(pairs), nowMs, status) && areSame(pairs, nowMs, status);
        },
      ),
      seeded(25_000),
    );
  });

  it("is sane for objects that are no headers", () => {
    const anything = fc.oneof(
      fc.anything({
        withNullPrototype: true,
        withMap: true,
        withSet: true,
        withTypedArray: true,
        withBigInt: true,
        maxDepth: 2,
      }),
      fc.dictionary(name, fc.anything({ maxDepth: 1 })),
      fc.array(fc.tuple(fc.oneof(name, fc.anything({ maxDepth: 0 })), fc.anything({ maxDepth: 1 }))),
      fc.array(fc.oneof(name, fc.anything({ maxDepth: 1 }))),
    );
    fc.assert(
      fc.property(anything, clocks, statuses, (headers, nowMs, status) => isSane(headers, nowMs, status)),
      seeded(5_000),
    );
  });

  it("is sane for objects that throw, lie or never end", () => {
    const traps = fc.record({
      trap: fc.constantFrom("get", "has", "ownKeys", "getOwnPropertyDescriptor", "getPrototypeOf"),
      after: fc.nat(6),
    });
    fc.assert(
      fc.property(fc.dictionary(name, value), traps, statuses, (record, { trap, after }, status) => {
        let calls = 0;
        const handler = new Proxy(
          {},
          {
            get: (_target, asked) => {
              if (asked !== trap || calls++ < after) return undefined;
              return () => {
                throw new Error("no headers here");
              };
            },
          },
        );
        // It may answer differently each time, so that the two readers need not agree.
        const headers = new Proxy(record, handler);
        return isSaneRateLimit(parseRateLimit(headers, 0)) && isSaneAnswer(readAnswer(headers, 0, status));
      }),
      seeded(5_000),
    );
  });

  it.each<[string, () => unknown]>([
    [
      "an iterator that never ends",
      () => ({
        *[Symbol.iterator]() {
          for (;;) yield ["x-ratelimit-remaining", "5"];
        },
      }),
    ],
    [
      "an iterator that throws",
      () => ({
        [Symbol.iterator]: () => {
          throw new Error("no");
        },
      }),
    ],
    [
      "a getter that asks again",
      () => ({
        get "x-ratelimit-limit"(): unknown {
          return parseRateLimit(this as never, 0);
        },
        "retry-after": "1",
      }),
    ],
    [
      "a name that is no text",
      () => [
        [
          {
            toString: (): never => {
              throw new Error("no");
            },
          },
          "1",
        ],
      ],
    ],
    [
      "a value that is no text",
      () => ({
        "retry-after": {
          toString: (): never => {
            throw new Error("no");
          },
        },
      }),
    ],
    [
      "a list that holds itself",
      () => {
        const list: unknown[] = ["retry-after"];
        list.push(list);
        return list;
      },
    ],
    ["a million fields", () => Array.from({ length: 1_000_000 }, (_, i) => [`x-ratelimit-limit-${i}`, "1"])],
    ["a long name", () => ({ [`x-ratelimit-${"limit-".repeat(10_000)}`]: "1" })],
    [
      "a million letters",
      () => ({ ratelimit: `"a";r=1;${"t=1;".repeat(250_000)}`, "x-ratelimit-limit": "1,".repeat(500_000) }),
    ],
  ])("is sane and soon done for %s", (_title, make) => {
    const headers = make();
    const startedMs = performance.now();
    expect(isSane(headers, 0, 429)).toBe(true);
    // Reads at most 1,024 fields of at most 8,192 characters, twice; without these bounds it would take a hundred times as long.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("stays linear on the longest values it looks at", () => {
    const bodies = [
      "9",
      ",",
      "1,",
      "1;",
      '"',
      '"\\',
      "1m",
      "1.",
      "a=",
      "1/",
      "1:1,",
      ";w=1",
      " ",
      "a;1,",
      "(",
      "Sun, ",
      "-9",
    ];
    const names = [
      "RateLimit",
      "RateLimit-Policy",
      "RateLimit-Limit",
      "X-RateLimit-Reset",
      "X-RateLimit-Window",
      "Sforce-Limit-Info",
    ];
    const others = [
      "x-ms-ratelimit-remaining-resource",
      "Zendesk-RateLimit-Endpoint",
      "Retry-After",
      "Date",
      "Age",
      "X-App-Rate-Limit",
    ];
    const startedMs = performance.now();
    for (const each of [...names, ...others]) {
      for (const body of bodies) {
        for (const end of ["", "x", ",", '"']) {
          const text = `1${body.repeat(Math.floor(8_000 / body.length))}${end}`;
          readAnswer({ [each]: text, "X-RateLimit-Remaining": "0" }, 0, 429);
        }
      }
    }
    // 816 values; quadratic work on any of them would take far longer than this generous bound allows.
    expect(performance.now() - startedMs).toBeLessThan(4_000);
  });
});

describe("reading headers never makes a client early", () => {
  const fraction = fc.stringMatching(/^\d{0,7}$/);
  const whole = fc.oneof(fc.nat({ max: 1_000 }), fc.nat({ max: 999_999_999 }));

  /** The text of a delay, and how many tenths of a microsecond it is. */
  const delay = fc.tuple(whole, fraction).map(([seconds, digits]) => ({
    text: digits === "" ? String(seconds) : `${seconds}.${digits}`,
    exact: BigInt(seconds) * 10n ** 7n + BigInt(digits.padEnd(7, "0")),
  }));

  it("waits for what a retry hint asks, and less than a millisecond more", () => {
    const field = fc.constantFrom("Retry-After", "X-Retry-After", "X-RateLimit-Retry-After");
    fc.assert(
      fc.property(field, delay, statuses, (each, { text, exact }, status) => {
        const waited = BigInt(readAnswer({ [each]: text }, 0, status).retryAfterUs) * 10n;
        return waited >= exact && waited < exact + 10_000n;
      }),
      seeded(5_000),
    );
  });

  it("waits for the largest of several lines", () => {
    fc.assert(
      fc.property(fc.array(whole, { minLength: 1, maxLength: 5 }), (seconds) => {
        const lines = seconds.map(String);
        const us = readAnswer({ "Retry-After": lines }, 0, 429).retryAfterUs;
        return (
          us === Math.max(...seconds) * 1_000_000 &&
          us ===
            readAnswer(new Headers(lines.map((line): [string, string] => ["Retry-After", line])), 0, 429).retryAfterUs
        );
      }),
      seeded(3_000),
    );
  });

  it("waits for the reset of an empty bucket, and less than a millisecond more", () => {
    fc.assert(
      fc.property(delay, ({ text, exact }) => {
        const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": text };
        const waited = BigInt(readAnswer(headers, 0, 429).retryAfterUs) * 10n;
        return waited >= exact && waited < exact + 10_000n;
      }),
      seeded(5_000),
    );
  });

  it("waits until the instant that a date names, by the server's clock or else by ours", () => {
    const instants = fc.integer({ min: Date.UTC(2002, 0, 1) / 1_000, max: Date.UTC(2060, 0, 1) / 1_000 });
    fc.assert(
      fc.property(instants, instants, fc.option(instants), fc.nat(3), (at, ours, servers, form) => {
        const date = new Date(at * 1_000);
        const reset = [String(at), String(at * 1_000), date.toUTCString(), date.toISOString()][form];
        const clock = servers === null ? {} : { date: new Date(servers * 1_000).toUTCString() };
        const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, ...clock };
        const expectedUs = Math.max(0, at - (servers ?? ours)) * 1_000_000;
        return readAnswer(headers, ours * 1_000, 429).retryAfterUs === expectedUs;
      }),
      seeded(5_000),
    );
  });
});
