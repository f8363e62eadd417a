import fc from "fast-check";
import type { Answer } from "../../../src/core/answer.js";
import type { Cost } from "../../../src/core/key.js";
import type { Rule } from "../../../src/core/rule.js";
import { ruleOf } from "./rules.js";

const second = 1_000_000;
const minute = 60 * second;
const day = 24 * 60 * minute;

function among<Value>(...values: readonly Value[]): fc.Arbitrary<Value> {
  return fc.constantFrom(...values);
}

/** How time moves before a step: mostly a little ahead, sometimes far, sometimes back. */
const timeStep: fc.Arbitrary<number> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(0, 1, 500) },
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 100_000 }) },
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 2 * second }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 30 * second }) },
  { weight: 1, arbitrary: fc.integer({ min: 30 * second, max: 10 * minute }) },
  { weight: 1, arbitrary: fc.integer({ min: 10 * minute, max: 3 * day }) },
  { weight: 2, arbitrary: fc.integer({ min: -second, max: -1 }) },
  { weight: 1, arbitrary: fc.integer({ min: -60 * minute, max: -second }) },
);

const count = fc.integer({ min: 1, max: 6 });
const span = fc.constantFrom(1_000, 7_777, 100_000, second, 5 * second, 90 * second, 20 * minute);
const backoff = fc.record({
  kind: fc.constantFrom("none" as const, "linear" as const, "exponential" as const),
  baseUs: fc.constantFrom(200_000, second),
  maxUs: fc.constantFrom(second, 20 * second),
  jitter: fc.constantFrom(0, 0.3),
});
const windows = fc.array(fc.record({ count, perUs: span, grainUs: fc.constantFrom(1, 1, 100, 4_000) }), {
  maxLength: 2,
});

/** A policy for a key. Small numbers, so that limits are met often. */
const rule: fc.Arbitrary<Rule> = fc
  .record({
    enabled: fc.constantFrom(true, true, true, true, true, true, true, false),
    gapUs: fc.oneof(fc.constant(0), fc.constant(0), span),
    rateCount: fc.oneof(fc.constant(0), count, count),
    ratePerUs: span,
    burst: count,
    windows: fc.oneof(fc.constant([]), windows),
    quota: fc.option(
      fc.record({ count, per: fc.constantFrom("hour" as const, "day" as const), timeZone: among("UTC") }),
      {
        nil: undefined,
        freq: 4,
      },
    ),
    concurrency: fc.oneof(
      { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
    ),
    fromAnswer: fc.constantFrom(false, false, false, true),
    maxHoldUs: among(3 * second, 300 * second),
    permitTtlUs: among(200_000, second, 30 * second, 30 * second),
    cooldownUs: fc.constantFrom([60 * second], [second, 3 * second, 9 * second], [0, 100_000]),
    backoff,
  })
  .map(ruleOf);

const answer: fc.Arbitrary<Answer> = fc.record({
  kind: fc.constantFrom(
    ...(["success", "success", "rate_limited", "server_error", "timeout", "neutral", "unused"] as const),
  ),
  retryAfterUs: fc.constantFrom(0, 0, 500_000, 30 * second),
  because: fc.constantFrom("429", "503, Retry-After 30 s", 'ü "]\\ \u{1f40c}', ""),
  latencyUs: fc.constant(undefined),
  scope: fc.constant(undefined),
  budget: fc.option(
    fc.record({
      remaining: among(0, 1, 5),
      resetUs: among(0, second, 45 * second),
      because: among("1 left", ""),
    }),
    { nil: undefined, freq: 3 },
  ),
});
const noAnswer = answer.map((made): Answer => ({ ...made, kind: "unused", budget: undefined }));

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const asker = among("p.1", "p.1", "p.2", "q/ü.3", "q/ü.4", "r.1");
/** Those who give back and record have names of their own. */
const repeating = fc.oneof(asker, asker, among("p.1s0", "p.1s1", "p.1s2", "p.x", "s.x"));
const pick = fc.nat({ max: 1_000 });
const few = among(1, 1, 1, 2, 3);
const one = { rate: 1, window: 1, quota: 1 };
const cost: fc.Arbitrary<Cost> = fc.oneof(
  fc.constant(one),
  fc.constant(one),
  fc.record({ rate: few, window: few, quota: few }),
);
const rules = fc.array(pick, { minLength: 3, maxLength: 3 });
const slowUs: fc.Arbitrary<number> = among(0, 0, 0, 0, 50_000, 3 * second);

const take = fc.record({
  kind: fc.constant("take" as const),
  asker,
  keys: pick,
  rules,
  cost,
  slowUs,
  count: among<number>(1, 1, 1, 1, 2, 5),
  horizonUs: among<number>(0, 0, 5_000, second),
  grainUs: among<number>(1, 1, 1, 1_000),
  doesWait: fc.boolean(),
  isTold: fc.boolean(),
});
const back = among(0, 0, 1, 2, -1, -2);
const settle = fc.record({
  kind: fc.constant("settle" as const),
  start: pick,
  unused: fc.record({ rate: back, window: back, quota: back }),
  answer,
  random,
  isOver: fc.constantFrom(true, true, false),
  meant: pick,
});
/** Comes back unused: mostly one of the last few. */
const unused = fc.record({
  kind: fc.constant("unused" as const),
  ago: among(0, 0, 0, 1, 2, 3, 10),
  answer: noAnswer,
});
const recorded = fc.record({
  kind: fc.constant("record" as const),
  asker: among("p.x", "s.x"),
  keys: pick,
  rules,
  cost,
  slowUs,
  agesUs: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 3 * second }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * day }) },
    ),
    { maxLength: 9 },
  ),
  counts: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 9, maxLength: 9 }),
  units: fc.option(fc.array(fc.nat({ max: 30 }), { minLength: 9, maxLength: 9 }), { nil: undefined }),
  owed: fc.option(fc.array(fc.nat({ max: 5 }), { minLength: 3, maxLength: 3 }), { nil: undefined }),
  answer: fc.option(answer, { nil: undefined }),
  random,
  meant: among(0, 0, 1),
  pauseUs: fc.constantFrom(undefined, undefined, undefined, 0, second, Number.POSITIVE_INFINITY),
  reset: fc.constantFrom(undefined, undefined, undefined, "pacing" as const, "all" as const),
});
const renew = fc.record({
  kind: fc.constant("renew" as const),
  process: among("p", "q/ü", "r"),
  keys: pick,
  rules,
  places: fc.array(pick, { maxLength: 4 }),
  completeBefore: among(0, 5, 1_000),
  gone: fc.subarray(["p.1", "p.2", "q/ü.3", "r.1"]),
  isLeaving: fc.constantFrom(false, false, false, true),
});
const lease = fc.record({
  kind: fc.constant("lease" as const),
  act: fc.constantFrom("take" as const, "take" as const, "renew" as const, "release" as const, "look" as const),
  holder: fc.constantFrom("h1", "h2", "ü"),
  label: fc.constantFrom("host one", "]ü\u{1f40c}"),
  ttlUs: fc.constantFrom(second, 60 * second),
});
const look = fc.record({ kind: fc.constant("look" as const), keys: pick, rules, cost, slowUs });

const action = fc.oneof(
  { weight: 12, arbitrary: take },
  { weight: 5, arbitrary: settle },
  { weight: 3, arbitrary: unused },
  { weight: 2, arbitrary: recorded },
  { weight: 2, arbitrary: renew },
  { weight: 1, arbitrary: lease },
  { weight: 4, arbitrary: look },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("again" as const), asker: repeating }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("late" as const), asker }) },
);

/** One step of a history: what is done, and how much time passes before. `pick`s choose among what there is by then. */
export type Action = typeof action extends fc.Arbitrary<infer Kind> ? Kind : never;

/** A random history. */
export interface History {
  readonly rules: readonly Rule[];
  readonly steps: readonly { readonly stepUs: number; readonly action: Action }[];
}

const anyHistory: fc.Arbitrary<History> = fc.record({
  rules: fc.array(rule, { minLength: 1, maxLength: 4 }),
  steps: fc.array(fc.record({ stepUs: timeStep, action }), { minLength: 30, maxLength: 60, size: "max" }),
});

/** Always the first key, under the first policy. */
const AT_ONE_KEY = { keys: 0, rules: [0, 0, 0], slowUs: 0 };

/** A history of one key with a window, and perhaps a bucket, in which starts of many instants are taken, and come back unused. */
const returning: fc.Arbitrary<History> = fc.record({
  rules: fc
    .record({
      gapUs: fc.constantFrom(0, 0, 700),
      rateCount: fc.constantFrom(0, 1, 3),
      ratePerUs: fc.constantFrom(20_000, 100_000),
      burst: fc.constantFrom(5, 20),
      windows: fc.tuple(
        fc.record({
          count: fc.integer({ min: 4, max: 40 }),
          perUs: among(100_000, second),
          grainUs: among(1, 1, 100, 4_000),
        }),
      ),
    })
    .map((made) => [ruleOf(made)]),
  steps: fc.array(
    fc.record({
      stepUs: fc.integer({ min: 0, max: 40_000 }),
      action: fc.oneof(
        { weight: 3, arbitrary: take.map((made) => ({ ...made, ...AT_ONE_KEY, doesWait: false })) },
        // One burst at once, and others as soon as they are possible.
        {
          weight: 1,
          arbitrary: take.map((made) => ({ ...made, ...AT_ONE_KEY, doesWait: false, count: 12, horizonUs: second })),
        },
        { weight: 2, arbitrary: unused },
        { weight: 2, arbitrary: look.map((made) => ({ ...made, ...AT_ONE_KEY })) },
      ),
    }),
    { minLength: 30, maxLength: 60, size: "max" },
  ),
});

/** A history in which much is sent again, also after the clock was set back far enough that a key takes its past along. */
const repeated: fc.Arbitrary<History> = fc.record({
  rules: fc.array(rule, { minLength: 1, maxLength: 2 }),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 200_000 }) },
        { weight: 1, arbitrary: fc.integer({ min: -3 * second, max: -2 * second }) },
      ),
      action: fc.oneof(
        { weight: 4, arbitrary: take },
        { weight: 2, arbitrary: settle },
        { weight: 1, arbitrary: recorded },
        { weight: 4, arbitrary: fc.record({ kind: fc.constant("again" as const), asker: repeating }) },
        { weight: 1, arbitrary: look },
      ),
    }),
    { minLength: 30, maxLength: 60, size: "max" },
  ),
});

/** A random history over up to four keys, with up to four policies; or one in which much comes back unused, or is sent again. */
export const history: fc.Arbitrary<History> = fc.oneof(
  { weight: 4, arbitrary: anyHistory },
  { weight: 1, arbitrary: returning },
  { weight: 1, arbitrary: repeated },
);

const waitingTake = fc
  .record({ made: take, weight: among(1, 1, 2, 5), who: among("p.1", "p.1", "q.2", "r.3", "s.4", "t.5") })
  .map(({ made, weight, who }) => ({
    ...made,
    // One of two keys, or both, under the first policy.
    keys: [0, 3, 4, 4, 5][made.keys % 5],
    rules: [0, 0, 0],
    asker: who,
    cost: { rate: weight, window: weight, quota: weight },
    slowUs: 0,
    count: 1,
    horizonUs: 0,
    doesWait: true,
  }));

/** A random history of those who wait at two keys for places, or for much of a bucket or window. */
export const waitingHistory: fc.Arbitrary<History> = fc.record({
  rules: fc
    .oneof(
      fc.record({ concurrency: fc.integer({ min: 1, max: 2 }), fromAnswer: fc.constantFrom(false, true) }),
      fc.record({ rateCount: count, ratePerUs: among(second, 5 * second), burst: among(5, 8) }),
      fc.record({
        windows: fc.tuple(fc.record({ count: among(5, 8), perUs: among(second, 10 * second), grainUs: among(1, 100) })),
      }),
      fc.record({ concurrency: among(1), rateCount: among(1), ratePerUs: among(second), burst: among(5) }),
    )
    .map((made) => [ruleOf(made)]),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 4 * second })),
      action: fc.oneof(
        { weight: 6, arbitrary: waitingTake },
        {
          weight: 1,
          arbitrary: settle.map((made) => ({ ...made, isOver: true, unused: { rate: 0, window: 0, quota: 0 } })),
        },
        { weight: 1, arbitrary: look.map((made) => ({ ...made, rules: [0, 0, 0], slowUs: 0 })) },
      ),
    }),
    { minLength: 30, maxLength: 60, size: "max" },
  ),
});

/** A bucket of any size: a debt times a time is far beyond 2^53. */
const anyBucket = fc
  .record({
    rateCount: fc.oneof(count, fc.integer({ min: 1, max: 1_000_000 })),
    ratePerUs: fc.oneof(span, fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 8 * day })),
    burst: fc.oneof(count, fc.integer({ min: 1, max: 1_000 })),
  })
  .map(ruleOf);

/** A random history of one key whose bucket gets other numbers again and again. */
export const bucketHistory: fc.Arbitrary<History> = fc.record({
  rules: fc.array(anyBucket, { minLength: 2, maxLength: 12, size: "max" }),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(0, 1, 1_000) },
        { weight: 10, arbitrary: fc.integer({ min: 0, max: 100_000 }) },
        { weight: 1, arbitrary: timeStep },
      ),
      action: fc.oneof(
        { weight: 6, arbitrary: take.map((made) => ({ ...made, keys: 0, doesWait: false, slowUs: 0 })) },
        { weight: 1, arbitrary: recorded.map((made) => ({ ...made, keys: 0, slowUs: 0 })) },
        { weight: 4, arbitrary: look.map((made) => ({ ...made, keys: 0, slowUs: 0 })) },
      ),
    }),
    { minLength: 60, maxLength: 120, size: "max" },
  ),
});

/** A history of one key with windows of several sizes, whose logs grow, go round, and are found through. */
export const longHistory: fc.Arbitrary<History> = fc.record({
  rules: fc
    .array(
      fc.record({
        windows: fc.array(
          fc.record({
            count: among(20, 300, 4_000),
            perUs: among(100_000, second, 20 * second),
            grainUs: among(1, 1, 1_000),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((made) => made.map(ruleOf)),
  steps: fc.array(
    fc.record({
      stepUs: fc.integer({ min: 0, max: 30_000 }),
      action: fc.oneof(
        {
          weight: 6,
          arbitrary: recorded.map((made) => ({
            ...made,
            keys: 0,
            slowUs: 0,
            answer: undefined,
            reset: undefined,
            pauseUs: undefined,
            // Each at an instant of its own.
            agesUs: Array.from({ length: 40 }, (_, index) => (40 - index) * 700),
            counts: Array.from({ length: 40 }, () => 1),
          })),
        },
        { weight: 2, arbitrary: take.map((made) => ({ ...made, keys: 0, doesWait: false, slowUs: 0 })) },
        { weight: 1, arbitrary: unused },
        { weight: 2, arbitrary: look.map((made) => ({ ...made, keys: 0, slowUs: 0 })) },
      ),
    }),
    { minLength: 60, maxLength: 120, size: "max" },
  ),
});

const counted = { keys: 0, rules: [0, 0, 0], cost: one, slowUs: 0 };

/** A history of one key whose starts are more than a log keeps. */
export const fullHistory: History = {
  rules: [ruleOf({ windows: [{ count: 4_000, perUs: 20 * second, grainUs: 1 }] })],
  steps: Array.from({ length: 110 }, (_, index) => {
    const agesUs = Array.from({ length: 100 }, (__, age) => age * 10);
    const told = { answer: undefined, owed: undefined, units: undefined, pauseUs: undefined, reset: undefined };
    const starts = { agesUs, counts: agesUs.map(() => 1), meant: 0, random: 0, ...told };
    const record = { kind: "record", asker: "p.x", ...counted, ...starts } as const;
    return { stepUs: 1_000, action: index % 2 === 0 ? record : { kind: "look", ...counted } };
  }),
};
