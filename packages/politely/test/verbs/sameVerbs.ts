import fc, { type Arbitrary } from "fast-check";
import {
  type AcquireOptions,
  type LimiterOptions,
  type Limits,
  limit,
  type Outcome,
  type Permit,
  politely,
  type Target,
} from "../../src/index.js";

/** The verbs about one key, whichever kind of limiter they belong to. */
export interface Verbs {
  acquire(options?: AcquireOptions): Promise<Permit>;
  tryAcquire(options?: Pick<AcquireOptions, "cost">): Permit | undefined;
  look(): unknown[];
  stats(): { readonly asked: number } | undefined;
  record(outcome: Outcome, startedAtMs: number): void;
  run(task: () => unknown): Promise<unknown>;
  pause(duration: number | undefined): void;
  resume(): void;
  cancelWaiting(): number;
  idle(): Promise<void>;
  configure(limits: Limits): void;
  reset(what: "pacing" | "stats" | "all"): void;
  close(drain: boolean): Promise<void>;
  subscribe(listener: (event: unknown) => void): void;
}

/** The key of a limiter for one key. A host may have the same name, so that nothing tells the two apart. */
export const KEY = "limit";

/** Those of `limit`. */
export function verbsOfLimit(limits: Limits, options: LimiterOptions): Verbs {
  const limiter = limit(limits, options);
  return {
    acquire: (ask) => limiter.acquire(ask),
    tryAcquire: (ask) => limiter.tryAcquire(ask),
    look: () => [limiter.check(), { ...limiter.explain(), origin: "" }, limiter.elapsedMs()],
    stats: () => limiter.stats(),
    record: (outcome, startedAtMs) => limiter.record(outcome, { startedAtMs }),
    run: (task) => limiter.run(task),
    pause: (duration) => limiter.pause(duration),
    resume: () => limiter.resume(),
    cancelWaiting: () => limiter.cancelWaiting(),
    idle: () => limiter.idle(),
    configure: (next) => limiter.configure(next),
    reset: (what) => limiter.reset(what),
    close: (drain) => limiter.close({ drain }),
    subscribe: (listener) => void limiter.subscribe(listener),
  };
}

/** Those of `politely` about a target whose host is `KEY`. */
export function verbsOfPolitely(target: Target, limits: Limits, options: LimiterOptions): Verbs {
  const policyOf = (entry: Limits) => ({ default: entry, hosts: { [KEY]: entry } });
  const limiter = politely(policyOf(limits), options);
  return {
    acquire: (ask) => limiter.acquire(target, ask),
    tryAcquire: (ask) => limiter.tryAcquire(target, ask),
    look: () => [limiter.check(target), { ...limiter.explain(target), origin: "" }, limiter.elapsedMs(target)],
    stats: () => limiter.stats(target),
    record: (outcome, startedAtMs) => limiter.record(target, outcome, { startedAtMs }),
    run: (task) => limiter.run(target, task),
    pause: (duration) => limiter.pause(target, duration),
    resume: () => limiter.resume(target),
    cancelWaiting: () => limiter.cancelWaiting(target),
    idle: () => limiter.idle(target),
    configure: (next) => limiter.configure(policyOf(next)),
    reset: (what) => limiter.reset(target, what),
    close: (drain) => limiter.close({ drain }),
    subscribe: (listener) => void limiter.subscribe(listener),
  };
}

const span = fc.oneof(fc.integer({ min: 1, max: 3000 }), fc.constantFrom("0.5s" as const, 0.25, 12.5));
const rate = fc.oneof(
  fc.constantFrom("1/s" as const, "5/s" as const, "0.5/s" as const, "3/2s" as const),
  fc.record({ count: fc.integer({ min: 1, max: 5 }), per: span }),
);

/** Random limits of every kind. */
export const anyLimits: Arbitrary<Limits> = fc
  .record({
    enabled: fc.constantFrom(undefined, undefined, undefined, undefined, false),
    minDelay: fc.option(span, { nil: undefined }),
    rate: fc.option(rate, { nil: undefined, freq: 2 }),
    burst: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    window: fc.option(fc.array(rate, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 2 }),
    quota: fc.constantFrom(undefined, undefined, { count: 7, per: "hour" as const }),
    concurrency: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 2 }),
    countFrom: fc.constantFrom(undefined, undefined, "answer" as const),
    backoff: fc.constantFrom(undefined, "none" as const, {
      kind: "linear" as const,
      base: 500,
      max: 5000,
      jitter: 0.5,
    }),
    cooldown: fc.constantFrom(undefined, 0, [1000, 0, 3000]),
    adaptive: fc.constantFrom(undefined, undefined, true, { max: "4/s" as const }),
    maxWait: fc.constantFrom(undefined, undefined, 0, 4000),
    maxQueue: fc.constantFrom(undefined, undefined, 0, 3),
    maxHold: fc.constantFrom(undefined, undefined, 700, "1h" as const),
  })
  .map((limits) => (limits.rate === undefined ? { ...limits, burst: undefined } : limits));

/** Random outcomes, some of them of a scope that is not there. */
export const anyOutcome: Arbitrary<Outcome> = fc.oneof(
  fc.constantFrom("success" as const, "rate_limited" as const, "server_error" as const, "unused" as const),
  fc.record({
    kind: fc.constantFrom("success" as const, "rate_limited" as const, "timeout" as const),
    retryAfterMs: fc.constantFrom(0, Number.NaN, 1500, 20_000),
    latencyMs: fc.constantFrom(1, 5000),
  }),
  fc.record({
    status: fc.constantFrom(200, 404, 429, 503),
    headers: fc.constantFrom({}, { "retry-after": "3" }, { "x-ratelimit-remaining": "3", "x-ratelimit-reset": "10" }),
  }),
  fc.constant({ kind: "success" as const, scope: "nobody" }),
);
