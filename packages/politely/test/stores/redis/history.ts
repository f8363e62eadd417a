import fc from "fast-check";
import type { AnswerNote, SharedRule } from "../../../src/shared/operation.js";

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

const windows = fc
  .array(fc.tuple(count, span, fc.constantFrom(1, 1, 100, 4_000)), { maxLength: 2 })
  .map((list) => list.flat());

/** A policy for a key. Small numbers, so that limits are met often. */
const rule: fc.Arbitrary<SharedRule> = fc
  .record({
    gapUs: fc.oneof(fc.constant(0), fc.constant(0), span),
    rateCount: fc.oneof(fc.constant(0), count, count),
    ratePerUs: span,
    burst: count,
    windows: fc.oneof(fc.constant([]), windows),
    quota: fc.oneof(fc.constant(0), fc.constant(0), fc.constant(0), count),
    calendar: fc.constantFrom("day UTC", "hour UTC"),
    concurrency: fc.oneof(fc.constant(0), fc.constant(0), fc.constant(0), fc.integer({ min: 1, max: 3 })),
    fromAnswer: fc.constantFrom(false, false, false, true),
  })
  .map((made) => ({
    ...made,
    ratePerUs: made.rateCount === 0 ? 0 : made.ratePerUs,
    burst: made.rateCount === 0 ? 1 : made.burst,
    calendar: made.quota === 0 ? "" : made.calendar,
  }));

const NO_LIMIT: SharedRule = {
  gapUs: 0,
  rateCount: 0,
  ratePerUs: 0,
  burst: 1,
  windows: [],
  quota: 0,
  calendar: "",
  concurrency: 0,
  fromAnswer: false,
};

const answer: fc.Arbitrary<AnswerNote> = fc
  .record({
    kind: fc.constantFrom(
      ...(["success", "success", "rate_limited", "server_error", "timeout", "neutral", "unused"] as const),
    ),
    retryAfterUs: fc.constantFrom(0, 0, 500_000, 30 * second),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    because: fc.constantFrom("429", "503, Retry-After 30 s", 'ü "]\\ \u{1f40c}', ""),
    remaining: fc.constantFrom(-1, -1, -1, 0, 1, 5),
    resetUs: fc.constantFrom(0, second, 45 * second),
  })
  .map((made) => (made.remaining < 0 ? { ...made, resetUs: 0 } : made));

const back = among(0, 0, 1, 2, -1, -2);
const cooling = fc.record({
  cooldownUs: fc.constantFrom([60 * second], [second, 3 * second, 9 * second], [0, 100_000]),
  backoff: fc.record({
    kind: fc.constantFrom("none" as const, "linear" as const, "exponential" as const),
    baseUs: fc.constantFrom(200_000, second),
    maxUs: fc.constantFrom(second, 20 * second),
    jitter: fc.constantFrom(0, 0.3),
  }),
  isHeld: fc.constantFrom(true, true, true, false),
});

/** Whether the process knows which period of the calendar it is. */
const period = fc.constantFrom(
  "right" as const,
  "right" as const,
  "right" as const,
  "right" as const,
  "old" as const,
  "none" as const,
);
const asker = among("p:1", "p:1", "p:2", "q/ü:3", "");
const pick = fc.nat({ max: 1_000 });
const few = among(1, 1, 1, 2, 3);

/** Always the first key, under the first policy. */
const AT_ONE_KEY = { keys: 0, rules: [0, 0, 0] };

const take = fc.record({
  kind: fc.constant("take" as const),
  asker,
  keys: pick,
  rules: fc.array(pick, { minLength: 3, maxLength: 3 }),
  cost: fc.record({ rate: few, window: few, quota: few }),
  slowUs: among(0, 0, 0, 0, 50_000, 3 * second),
  period,
  count: among(1, 1, 1, 1, 2, 5),
  horizonUs: among(0, 0, 5_000, second),
  ticket: among("", "", "t1", "t2", "t3", "t4"),
  isTurn: fc.boolean(),
  hasMore: fc.constantFrom(false, false, false, true),
  leaseUs: among(second, 30 * second, 30 * second),
  maxHoldUs: among(3 * second, 300 * second),
  member: among("", "", "", "m1", "m2"),
});
const settle = fc.record({
  kind: fc.constant("settle" as const),
  asker,
  start: pick,
  answers: fc.array(fc.tuple(answer, back, back, back, cooling), { minLength: 3, maxLength: 3 }),
  isOver: fc.constantFrom(true, true, true, false),
  isUnused: fc.constantFrom(false, false, true),
  /** How many starts go back with it, at most. */
  others: among(0, 1, 4),
});
/** Starts that nobody used: nothing was answered. */
const unused: typeof settle = settle.map((made) => ({
  ...made,
  isOver: true,
  isUnused: true,
  others: made.others + 1,
  answers: made.answers.map(([note, rate, window, quota, terms]) => [
    { ...note, kind: "unused" as const, retryAfterUs: 0, remaining: -1, resetUs: 0 },
    Math.abs(rate),
    Math.max(1, window),
    Math.abs(quota),
    terms,
  ]),
}));
const recorded = fc.record({
  kind: fc.constant("record" as const),
  asker,
  keys: pick,
  rules: fc.array(pick, { minLength: 3, maxLength: 3 }),
  cost: fc.record({ rate: few, window: few, quota: few }),
  slowUs: among(0, 0, second),
  period,
  agesUs: fc.array(fc.integer({ min: 0, max: 3 * second }), { maxLength: 9 }),
  counts: fc.option(fc.array(fc.nat({ max: 20 }), { minLength: 9, maxLength: 9 }), { nil: undefined }),
  units: fc.option(fc.array(fc.record({ rate: few, window: few, quota: few }), { minLength: 9, maxLength: 9 }), {
    nil: undefined,
  }),
});
const rest = fc.oneof(
  fc.record({
    kind: fc.constant("renew" as const),
    asker,
    start: pick,
    places: fc.array(pick, { maxLength: 3 }),
    leaseUs: among(second, 30 * second),
  }),
  fc.record({ kind: fc.constant("leave" as const), asker, keys: pick, ticket: among("t1", "t2", "t3", "m1", "m2") }),
  recorded,
  fc.record({
    kind: fc.constant("set" as const),
    asker,
    keys: pick,
    pauseUs: fc.constantFrom(-1, -1, 0, 0, second, Number.POSITIVE_INFINITY),
    reset: fc.constantFrom("nothing" as const, "nothing" as const, "pacing" as const, "all" as const),
  }),
  fc.record({
    kind: fc.constant("lease" as const),
    act: fc.constantFrom("take" as const, "take" as const, "renew" as const, "release" as const, "look" as const),
    holder: fc.constantFrom("h1", "h2", "ü"),
    label: fc.constantFrom("host one", "]ü\u{1f40c}"),
    ttlUs: fc.constantFrom(second, 60 * second),
  }),
);
const look = fc.record({
  kind: fc.constant("look" as const),
  keys: pick,
  rules: fc.array(pick, { minLength: 3, maxLength: 3 }),
  cost: fc.record({ rate: few, window: few, quota: few }),
  slowUs: among(0, 0, second),
  period,
});

const action = fc.oneof(
  { weight: 12, arbitrary: take },
  { weight: 5, arbitrary: settle },
  { weight: 3, arbitrary: unused },
  { weight: 4, arbitrary: rest },
  { weight: 4, arbitrary: look },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("again" as const), asker }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("late" as const), asker }) },
);

/** One step of a history: what is done, and how much time passes before. `pick`s choose among what there is by then. */
export type Action = typeof action extends fc.Arbitrary<infer Kind> ? Kind : never;

const anyHistory = fc.record({
  rules: fc.oneof(
    { weight: 9, arbitrary: fc.array(rule, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(rule, { minLength: 20, maxLength: 20 }) },
  ),
  steps: fc.array(fc.record({ stepUs: timeStep, action }), { minLength: 30, maxLength: 60, size: "max" }),
});

/** A history of one key with a window in which starts of many instants are taken, and come back unused. */
const returning: typeof anyHistory = fc.record({
  rules: fc
    .record({
      gapUs: fc.constantFrom(0, 0, 700),
      windows: fc.tuple(fc.integer({ min: 4, max: 20 }), among(100_000, second), among(1, 1, 100, 4_000)),
    })
    .map((made) => [{ ...NO_LIMIT, ...made }]),
  steps: fc.array(
    fc.record({
      stepUs: fc.integer({ min: 0, max: 40_000 }),
      action: fc.oneof(
        { weight: 3, arbitrary: take.map((made) => ({ ...made, ...AT_ONE_KEY, ticket: "", slowUs: 0 })) },
        { weight: 2, arbitrary: unused },
        { weight: 2, arbitrary: look.map((made) => ({ ...made, ...AT_ONE_KEY, slowUs: 0 })) },
      ),
    }),
    { minLength: 30, maxLength: 60, size: "max" },
  ),
});

/**
 * A random history over up to four keys, with up to four policies, or with so many that some are forgotten; or one in which much
 * comes back unused.
 */
export const history = fc.oneof({ weight: 4, arbitrary: anyHistory }, { weight: 1, arbitrary: returning });

const one = { rate: 1, window: 1, quota: 1 };
const plainTake: typeof take = fc.record({
  kind: fc.constant("take" as const),
  asker: among("p:1", "p:2", "p:3"),
  keys: among(0),
  rules: fc.constant([0, 0, 0]),
  cost: among(...Array<typeof one>(30).fill(one), { rate: 2, window: 1, quota: 1 }),
  slowUs: among(0),
  period,
  count: among(...Array<number>(20).fill(1), 30, 400),
  horizonUs: among(0, 5_000, 7_000),
  ticket: among("", "t1"),
  isTurn: fc.boolean(),
  hasMore: among(...Array<boolean>(30).fill(false), true),
  leaseUs: among(30 * second),
  maxHoldUs: among(300 * second),
  member: among(...Array<string>(19).fill(""), "m1"),
});

/** A random history of one busy key with a rate, on which nothing much happens: it takes the short ways of the script. */
export const busyHistory: typeof history = fc.record({
  rules: fc
    .record({
      gapUs: fc.constantFrom(0, 0, 100, 70 * second),
      rateCount: count,
      ratePerUs: fc.constantFrom(1_000, 7_777, 40 * second),
      burst: fc.constantFrom(2, 50, 1_000),
    })
    .map((made) => [{ ...NO_LIMIT, ...made }]),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(
        { weight: 30, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
        { weight: 2, arbitrary: timeStep },
      ),
      action: fc.oneof({ weight: 20, arbitrary: plainTake }, { weight: 1, arbitrary: action }),
    }),
    { minLength: 30, maxLength: 80, size: "max" },
  ),
});

const waitingTake: typeof take = fc
  .record({ made: take, weight: among(1, 1, 2, 5), who: among("t1", "t1", "t2", "t3") })
  .map(({ made, weight, who }) => ({
    ...made,
    // One of two keys, or both, under the first policy.
    keys: [0, 3, 4, 4, 5][made.keys % 5],
    rules: [0, 0, 0],
    cost: { rate: weight, window: weight, quota: weight },
    slowUs: 0,
    count: 1,
    horizonUs: 0,
    ticket: made.ticket === "" ? "" : who,
    isTurn: true,
    hasMore: false,
    leaseUs: 30 * second,
    maxHoldUs: 300 * second,
  }));

/** A random history of those who wait at two keys for places, or for much of a bucket or window. */
export const waitingHistory: typeof history = fc.record({
  rules: fc
    .oneof(
      fc.record({ concurrency: fc.integer({ min: 1, max: 2 }), fromAnswer: fc.constantFrom(false, true) }),
      fc.record({ rateCount: count, ratePerUs: among(second, 5 * second), burst: among(5, 8) }),
      fc.record({ windows: fc.tuple(among(5, 8), among(second, 10 * second), among(1, 100)) }),
      fc.record({ concurrency: among(1), rateCount: among(1), ratePerUs: among(second), burst: among(5) }),
    )
    .map((made) => [{ ...NO_LIMIT, ...made }]),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 4 * second })),
      action: fc.oneof(
        { weight: 6, arbitrary: waitingTake },
        { weight: 1, arbitrary: settle.map((made) => ({ ...made, isOver: true, isUnused: false, others: 0 })) },
        { weight: 1, arbitrary: look.map((made) => ({ ...made, rules: [0, 0, 0], slowUs: 0 })) },
      ),
    }),
    { minLength: 30, maxLength: 60, size: "max" },
  ),
});

/** A bucket of any size: a debt times a time is far beyond 2^53. Debts themselves stay below, since clients read integers next to it wrongly. */
const anyBucket = fc
  .record({
    rateCount: fc.oneof(count, fc.integer({ min: 1, max: 1_000_000 })),
    ratePerUs: fc.oneof(span, fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 8 * day })),
    burst: fc.oneof(count, fc.integer({ min: 1, max: 1_000 })),
  })
  .map((made) => ({ ...NO_LIMIT, ...made }));

/** A random history of one key whose bucket gets other numbers again and again, in half of them so often that some are forgotten. */
export const bucketHistory: typeof history = fc.record({
  rules: fc.oneof(
    fc.array(anyBucket, { minLength: 2, maxLength: 12, size: "max" }),
    fc.array(anyBucket, { minLength: 40, maxLength: 40 }),
  ),
  steps: fc.array(
    fc.record({
      stepUs: fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(0, 1, 1_000) },
        { weight: 10, arbitrary: fc.integer({ min: 0, max: 100_000 }) },
        { weight: 1, arbitrary: timeStep },
      ),
      action: fc.oneof(
        { weight: 6, arbitrary: take.map((made) => ({ ...made, keys: 0, ticket: "", slowUs: 0, leaseUs: second })) },
        { weight: 1, arbitrary: recorded.map((made) => ({ ...made, keys: 0, slowUs: 0 })) },
        { weight: 4, arbitrary: look.map((made) => ({ ...made, keys: 0, slowUs: 0 })) },
      ),
    }),
    { minLength: 60, maxLength: 120, size: "max" },
  ),
});

/** A random history. */
export type History = typeof history extends fc.Arbitrary<infer Kind> ? Kind : never;
