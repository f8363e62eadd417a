import fc, { type Arbitrary } from "fast-check";
import type { Ask, Ending, Script, Step } from "../oracle/script.js";
import { type LimitSpec, maxCost } from "../oracle/spec.js";

/** A length of time in whole milliseconds or odd microseconds. */
export function spanUs(maxMs: number): Arbitrary<number> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 1, max: maxMs }).map((ms) => ms * 1000) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: maxMs * 8 }).map((eighths) => eighths * 125) },
  );
}

/** Which limits a random spec may hold. Default: all but the quota. */
export interface SpecRange {
  readonly gap?: boolean;
  readonly rate?: boolean;
  readonly windows?: boolean;
  readonly quota?: boolean;
  readonly concurrency?: boolean;
  readonly answer?: boolean;
}

/** A random mix of limits. */
export function anySpec(range: SpecRange = {}): Arbitrary<LimitSpec> {
  const windows = fc.array(fc.record({ count: fc.integer({ min: 1, max: 8 }), perUs: spanUs(4000) }), {
    minLength: 1,
    maxLength: 3,
  });
  const rate = fc.record({
    count: fc.integer({ min: 1, max: 12 }),
    perUs: spanUs(3000),
    burst: fc.integer({ min: 1, max: 6 }),
  });
  return fc
    .record({
      gapUs: some(range.gap, spanUs(1500)),
      rate: some(range.rate, rate),
      windows: some(range.windows, windows),
      hourQuota: some(range.quota ?? false, fc.integer({ min: 2, max: 12 })),
      concurrency: some(range.concurrency, fc.integer({ min: 1, max: 4 })),
      fromAnswer: range.answer === false ? fc.constant(undefined) : fc.constantFrom(undefined, undefined, true),
    })
    .map((spec) => present(spec));
}

/** How calls and what happens between them are drawn. */
export interface ScriptRange {
  readonly hosts?: readonly string[];
  readonly scopes?: readonly string[];
  readonly maxCost: number;
  readonly priorities?: boolean;
  readonly maxWaits?: boolean;
  readonly tries?: boolean;
  readonly looks?: boolean;
  readonly cancels?: boolean;
  readonly stalls?: boolean;
  readonly walls?: boolean;
  /** Requests recorded without a permit, and whole lanes cancelled. */
  readonly outside?: boolean;
  readonly endings?: Arbitrary<Ending>;
  /** How many policies `configure` steps may name. */
  readonly policies?: number;
  readonly maxLength?: number;
  /** The longest time between two steps. Default 3 s. */
  readonly pauseMs?: number;
}

/** A random script: mostly requests, often several at once. One in five has any length up to the longest, the others a few steps. */
export function anyScript(range: ScriptRange): Arbitrary<Script> {
  const pause = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: spanUs(60) },
    { weight: 2, arbitrary: spanUs(range.pauseMs ?? 3000) },
  );
  const lengths = { minLength: 1, maxLength: range.maxLength ?? 40 };
  const timed = fc.record({ afterUs: pause, step: anyStep(range) });
  return fc.oneof(
    { weight: 4, arbitrary: fc.array(timed, lengths) },
    { weight: 1, arbitrary: fc.array(timed, { ...lengths, size: "max" }) },
  );
}

/** The heaviest request all of these specs can take. */
export function costBound(...specs: readonly (LimitSpec | undefined)[]): number {
  return maxCost(...specs.filter((spec) => spec !== undefined));
}

/** Endings that hold nothing: no answer that says stop. */
export const calmEnding: Arbitrary<Ending> = fc.constantFrom({ kind: "neutral" }, { kind: "success" });

/** Calm endings, and requests that were never sent. */
export const returningEnding: Arbitrary<Ending> = fc.constantFrom(
  { kind: "neutral" },
  { kind: "success" },
  { kind: "unused" },
);

/** Any ending, the bad ones with and without a Retry-After. */
export const anyEnding: Arbitrary<Ending> = fc.oneof(
  { weight: 4, arbitrary: returningEnding },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("rate_limited" as const, "server_error" as const, "timeout" as const),
      retryAfterMs: fc.oneof(fc.integer({ min: 1, max: 9000 }), fc.constantFrom(0, -5, Number.NaN)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("rate_limited" as const, "server_error" as const, "timeout" as const),
    }),
  },
);

function anyStep(range: ScriptRange): Arbitrary<Step> {
  const ask = anyAsk(range);
  const pick = fc.nat({ max: 7 });
  const steps: { weight: number; arbitrary: Arbitrary<Step> }[] = [
    { weight: 12, arbitrary: ask.map((one) => ({ kind: "acquire", ask: one })) },
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant("release" as const), pick, ending: range.endings ?? calmEnding }),
    },
  ];
  if (range.tries === true) steps.push({ weight: 3, arbitrary: ask.map((one) => ({ kind: "try", ask: bare(one) })) });
  if (range.looks === true) {
    const host = fc.constantFrom(...(range.hosts ?? ["a.example"]));
    steps.push({ weight: 2, arbitrary: host.map((name) => ({ kind: "look", host: name })) });
  }
  if (range.cancels === true) steps.push({ weight: 4, arbitrary: pick.map((one) => ({ kind: "cancel", pick: one })) });
  if (range.stalls === true) {
    steps.push({ weight: 1, arbitrary: fc.constantFrom(50_000, 5_000_000).map((us) => ({ kind: "stall", us })) });
  }
  if (range.walls === true) {
    steps.push({
      weight: 1,
      arbitrary: fc.constantFrom(-3_600_000_000, 3_600_000_000).map((us) => ({ kind: "wall", us })),
    });
  }
  if (range.outside === true) {
    const host = fc.constantFrom(...(range.hosts ?? ["a.example"]));
    // What was never sent is not recorded.
    const ending = (range.endings ?? calmEnding).filter(({ kind }) => kind !== "unused");
    steps.push({ weight: 2, arbitrary: fc.record({ kind: fc.constant("record" as const), host, ending }) });
    steps.push({ weight: 1, arbitrary: host.map((name) => ({ kind: "cancelWaiting", host: name })) });
  }
  if (range.policies !== undefined) {
    const policy = fc.nat({ max: range.policies - 1 });
    steps.push({ weight: 2, arbitrary: policy.map((one) => ({ kind: "configure", policy: one })) });
  }
  return fc.oneof(...steps);
}

function anyAsk(range: ScriptRange): Arbitrary<Ask> {
  const scopes = range.scopes ?? [];
  return fc
    .record({
      host: fc.constantFrom(...(range.hosts ?? ["a.example"])),
      scopes:
        scopes.length === 0
          ? fc.constant(undefined)
          : fc.option(fc.subarray([...scopes], { minLength: 1 }), { nil: undefined, freq: 2 }),
      cost: fc.integer({ min: 1, max: Math.max(1, range.maxCost) }),
      priority:
        range.priorities === true
          ? fc.option(fc.integer({ min: -2, max: 3 }), { nil: undefined })
          : fc.constant(undefined),
      maxWaitUs:
        range.maxWaits === true ? fc.option(spanUs(4000), { nil: undefined, freq: 2 }) : fc.constant(undefined),
    })
    .map((ask) => present(ask));
}

function bare(ask: Ask): Ask {
  return ask.scopes === undefined
    ? { host: ask.host, cost: ask.cost }
    : { host: ask.host, scopes: ask.scopes, cost: ask.cost };
}

function some<T>(isIn: boolean | undefined, arbitrary: Arbitrary<T>): Arbitrary<T | undefined> {
  return isIn === false ? fc.constant(undefined) : fc.option(arbitrary, { nil: undefined, freq: 2 });
}

type Present<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

/** Leaves out the fields that are undefined, as exact optional fields demand. */
function present<T extends object>(record: T): Partial<Present<T>> & Pick<T, RequiredKeys<T>> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Partial<Present<T>> &
    Pick<T, RequiredKeys<T>>;
}

type RequiredKeys<T> = { [Key in keyof T]: undefined extends T[Key] ? never : Key }[keyof T];
