import fc, { type Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import { type AuditLimit, auditTrace, type TraceEntry } from "../../../src/testing/index.js";
import { anySpec } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { type LimitSpec, toLimits } from "../../oracle/spec.js";
import type { Start } from "../../oracle/trace.js";
import {
  answerGapViolation,
  answerWindowViolation,
  bucketViolation,
  concurrencyViolation,
  gapViolation,
  hourQuotaViolation,
  windowViolation,
} from "../../oracle/violations.js";

const host = "a.example";
const maxHoldUs = 600_000_000;

/** An entry of a tiny trace: any whole microsecond from `lo` to `hi`. */
interface Loose {
  readonly lo: number;
  readonly hi: number;
  readonly cost: number;
}

describe("auditTrace beside slow models", () => {
  it("agrees with the pencil about every limit where all instants are exact", () => {
    const starts = fc.array(
      fc.record({
        atUs: fc.integer({ min: 0, max: 40 }).map((step) => step * 125_000),
        cost: fc.integer({ min: 1, max: 3 }),
        tookUs: fc.integer({ min: 1, max: 12 }).map((step) => step * 125_000),
        unused: fc.constantFrom(false, false, false, true),
      }),
      { minLength: 1, maxLength: 14 },
    );
    fc.assert(
      fc.property(anySpec({ quota: true }), starts, (spec, list) => {
        const trace = list.map(({ tookUs, ...start }) => ({ ...start, releasedUs: start.atUs + tookUs }));
        const entries = trace.map(
          ({ atUs, cost, releasedUs, unused }): TraceEntry => ({
            host,
            startedAtMs: atUs / 1000,
            endedAtMs: releasedUs / 1000,
            cost,
            unused,
          }),
        );
        expect(accused(entries, spec)).toEqual(wrongIn(trace, spec));
      }),
      seeded(3_000),
    );
  });

  it("accuses intervals exactly where no choice of times complies, if none reaches around another", () => {
    fc.assert(
      fc.property(tinySpec, tinyTrace(true, true), (spec, loose) => {
        expect(accused(loose.map(entryOf), spec)).toEqual(hopeless(loose, spec));
      }),
      seeded(2_000),
    );
  });

  it("judges a bucket exactly whatever the starts cost", () => {
    const buckets = fc.record({ rate: tinyRate });
    fc.assert(
      fc.property(buckets, tinyTrace(true, false), (spec, loose) => {
        expect(accused(loose.map(entryOf), spec)).toEqual(hopeless(loose, spec));
      }),
      seeded(1_000),
    );
  });

  it("never accuses what some choice of times allows, also with nested intervals and unequal costs", () => {
    fc.assert(
      fc.property(tinySpec, tinyTrace(false, false), (spec, loose) => {
        const wrong = hopeless(loose, spec);
        for (const limit of accused(loose.map(entryOf), spec)) expect(wrong).toContain(limit);
      }),
      seeded(2_000),
    );
  });
});

const tinyRate = fc.record({
  count: fc.constant(1),
  perUs: fc.integer({ min: 1, max: 5 }),
  burst: fc.integer({ min: 1, max: 3 }),
});

const tinySpec: Arbitrary<LimitSpec> = fc.oneof(
  fc.record({ gapUs: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ rate: tinyRate }),
  fc.record({
    windows: fc.tuple(fc.record({ count: fc.integer({ min: 1, max: 4 }), perUs: fc.integer({ min: 1, max: 9 }) })),
  }),
  fc.record({ hourQuota: fc.integer({ min: 1, max: 3 }) }),
);

// Around the end of an hour, for the quota.
const hourUs = 3_600_000_000;
const baseUs = hourUs - 6;

function tinyTrace(isAgreeable: boolean, isEqual: boolean): Arbitrary<Loose[]> {
  const one = fc.record({
    lo: fc.integer({ min: 0, max: 9 }),
    width: fc.integer({ min: 0, max: 4 }),
    cost: isEqual ? fc.constant(1) : fc.integer({ min: 1, max: 3 }),
  });
  return fc.array(one, { minLength: 1, maxLength: 5 }).map((list) => {
    const loose = list.map(({ lo, width, cost }) => ({ lo: baseUs + lo, hi: baseUs + lo + width, cost }));
    if (!isAgreeable) return loose;
    // The same beginnings and ends, paired in order.
    const los = loose.map(({ lo }) => lo).toSorted((a, b) => a - b);
    const his = loose.map(({ hi }) => hi).toSorted((a, b) => a - b);
    return loose.map(({ cost }, index) => ({ lo: los[index], hi: his[index], cost }));
  });
}

function entryOf({ lo, hi, cost }: Loose): TraceEntry {
  return { host, startedAtMs: lo === hi ? lo / 1000 : [lo / 1000, (hi + 1) / 1000], cost };
}

function accused(entries: readonly TraceEntry[], spec: LimitSpec): AuditLimit[] {
  const { keys } = auditTrace(entries, { default: Object.keys(spec).length === 0 ? { minDelay: 0 } : toLimits(spec) });
  return [...new Set(keys.flatMap(({ violations }) => violations.map(({ limit }) => limit)))];
}

/** The limits that no choice of times keeps: tries them all. */
function hopeless(loose: readonly Loose[], spec: LimitSpec): AuditLimit[] {
  let wrong: AuditLimit[] | undefined;
  const tryAll = (chosen: readonly Start[]): void => {
    if (chosen.length === loose.length) {
      const now = wrongIn(chosen, spec);
      wrong = wrong === undefined ? now : wrong.filter((limit) => now.includes(limit));
      return;
    }
    const { lo, hi, cost } = loose[chosen.length];
    for (let atUs = lo; atUs <= hi && wrong?.length !== 0; atUs++) tryAll([...chosen, { atUs, cost }]);
  };
  tryAll([]);
  return wrong ?? [];
}

function wrongIn(trace: readonly Start[], spec: LimitSpec): AuditLimit[] {
  const { gapUs = 0, rate, windows = [], hourQuota, concurrency, fromAnswer = false } = spec;
  const found: [AuditLimit, string | undefined][] = [["minDelay", gapViolation(trace, gapUs)]];
  if (fromAnswer) found.push(["minDelay", answerGapViolation(trace, gapUs, maxHoldUs)]);
  if (rate !== undefined) found.push(["rate", bucketViolation(trace, rate)]);
  for (const window of windows) {
    found.push(["window", windowViolation(trace, window)]);
    if (fromAnswer) found.push(["window", answerWindowViolation(trace, window, maxHoldUs)]);
  }
  if (hourQuota !== undefined) found.push(["quota", hourQuotaViolation(trace, hourQuota, 0)]);
  if (concurrency !== undefined) found.push(["concurrency", concurrencyViolation(trace, concurrency, maxHoldUs)]);
  return [...new Set(found.filter(([, problem]) => problem !== undefined).map(([limit]) => limit))];
}
