import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BadAnswer } from "../../src/core/answer.js";
import {
  afterBadAnswer,
  afterSuccess,
  INCIDENT_MEMORY_US,
  type Incident,
  incidentReadyAt,
  isIncidentForgotten,
  PROBE_PATIENCE_US,
} from "../../src/core/incident.js";
import type { Rule } from "../../src/core/rule.js";
import { compileRule } from "../../src/policy/compileRule.js";
import { seeded } from "../laws/seeded.js";

const second = 1_000_000;
const standard = compileRule({});
const exponential = compileRule({ backoff: "exponential" });
const ladder = compileRule({ cooldown: ["10s", "20s", "40s"] });

/** What is heard at `atS`, of a request started at `startedS`; what it asks for, if it does; and when the hold ends then. */
interface Row {
  readonly at: number;
  readonly started: number;
  readonly heard: BadAnswer | "success";
  readonly retryAfter?: number;
  readonly until: number | "free";
}

/** Plays answers on one key and compares where the hold ends after each, naming the row that differs. Times are seconds. */
function play(rule: Rule, rows: readonly Row[]): Incident | undefined {
  let state: Incident | undefined;
  rows.forEach(({ at, started, heard, retryAfter = 0, until }, index) => {
    state = hear(state, rule, { at, started, heard, retryAfter });
    const isFree = state === undefined || isIncidentForgotten(state, at * second);
    expect(isFree ? "free" : (state?.untilUs ?? 0) / second, `row ${index}, at ${at} s`).toBe(until);
  });
  return state;
}

function hear(
  state: Incident | undefined,
  rule: Rule,
  { at, started, heard, retryAfter = 0 }: Omit<Row, "until">,
  random = 0,
): Incident | undefined {
  const startedUs = started * second;
  const nowUs = at * second;
  if (heard === "success") return state && afterSuccess(state, startedUs, nowUs);
  const because = `${heard} at ${at} s`;
  const retryAfterUs = retryAfter * second;
  return afterBadAnswer(
    state,
    rule,
    { kind: heard, startedUs, nowUs, retryAfterUs, because, latencyUs: undefined },
    random,
  );
}

/** How long each of several incidents in a row holds, in seconds. */
function steps(rule: Rule, kind: BadAnswer, count: number, random = 0): number[] {
  let state: Incident | undefined;
  let at = 1;
  return Array.from({ length: count }, () => {
    state = hear(state, rule, { at, started: at - 0.5, heard: kind }, random);
    const heldS = ((state?.untilUs ?? 0) - at * second) / second;
    at += heldS + 1;
    return heldS;
  });
}

describe("the ladders", () => {
  it.each([
    {
      title: "linear: 5 s more each time, at most 30",
      rule: standard,
      kind: "server_error",
      held: [5, 10, 15, 20, 25, 30, 30, 30],
    },
    { title: "linear after timeouts too", rule: standard, kind: "timeout", held: [5, 10, 15, 20, 25, 30, 30] },
    {
      title: "exponential: 5, 10, 20, 40, 60 s",
      rule: exponential,
      kind: "server_error",
      held: [5, 10, 20, 40, 60, 60, 60],
    },
    { title: "60 s each time after too many requests", rule: standard, kind: "rate_limited", held: [60, 60, 60] },
    {
      title: "60 s after too many requests whatever the backoff",
      rule: exponential,
      kind: "rate_limited",
      held: [60, 60],
    },
    {
      title: "a list that begins with no hold",
      rule: compileRule({ cooldown: [0, "10s", 0] }),
      kind: "rate_limited",
      held: [0, 10, 0, 0],
    },
    { title: "a list, whose last step repeats", rule: ladder, kind: "rate_limited", held: [10, 20, 40, 40, 40] },
    {
      title: "another base and cap",
      rule: compileRule({ backoff: { kind: "exponential", base: "1s", max: "5s" } }),
      kind: "server_error",
      held: [1, 2, 4, 5, 5],
    },
  ] as const)("climb, one step an incident: $title", ({ rule, kind, held }) => {
    expect(steps(rule, kind, held.length)).toEqual(held);
  });

  it("stay finite after a thousand failures in a row", () => {
    expect(steps(exponential, "server_error", 1_000).at(-1)).toBe(60);
  });

  it("are climbed one by one: too many requests do not raise the step of errors", () => {
    play(ladder, [
      { at: 1, started: 0, heard: "rate_limited", until: 11 },
      { at: 12, started: 11.5, heard: "server_error", until: 17 },
      { at: 18, started: 17.5, heard: "rate_limited", until: 38 },
      { at: 39, started: 38.5, heard: "timeout", until: 49 },
    ]);
  });

  it("begin again after a success", () => {
    play(ladder, [
      { at: 1, started: 0, heard: "rate_limited", until: 11 },
      { at: 12, started: 11.5, heard: "rate_limited", until: 32 },
      { at: 33, started: 32.5, heard: "success", until: "free" },
      { at: 40, started: 39, heard: "rate_limited", until: 50 },
    ]);
  });

  it("hold nothing with backoff none, and say that nothing changed", () => {
    const none = compileRule({ backoff: "none" });
    expect(hear(undefined, none, { at: 1, started: 0, heard: "server_error" })).toBeUndefined();
    const held = hear(undefined, none, { at: 1, started: 0, heard: "rate_limited" });
    expect(hear(held, none, { at: 2, started: 0, heard: "timeout" })).toBe(held);
    expect(hear(undefined, none, { at: 1, started: 0, heard: "server_error", retryAfter: 3 })?.untilUs).toBe(
      4 * second,
    );
  });

  it("are lengthened by jitter, never shortened", () => {
    const jittery = compileRule({ backoff: { kind: "linear", base: "4s", max: "10s", jitter: 0.5 } });
    expect(steps(jittery, "server_error", 4, 0)).toEqual([4, 8, 10, 10]);
    expect(steps(jittery, "server_error", 4, 0.5)).toEqual([5, 10, 12.5, 12.5]);
    expect(steps(jittery, "rate_limited", 2, 0.9)).toEqual([60, 60]);
  });
});

describe("a hold", () => {
  it("lasts as long as the site asked, whatever the ladder says", () => {
    play(standard, [{ at: 1, started: 0, heard: "rate_limited", retryAfter: 300, until: 301 }]);
    play(standard, [{ at: 1, started: 0, heard: "rate_limited", retryAfter: 2, until: 3 }]);
    play(standard, [{ at: 1, started: 0, heard: "server_error", retryAfter: 90, until: 91 }]);
  });

  it("is only ever lengthened", () => {
    play(standard, [
      { at: 1, started: 0, heard: "rate_limited", retryAfter: 100, until: 101 },
      { at: 2, started: 0, heard: "rate_limited", retryAfter: 5, until: 101 },
      { at: 3, started: 0, heard: "server_error", until: 101 },
      { at: 4, started: 0, heard: "rate_limited", retryAfter: 100, until: 104 },
    ]);
  });

  it("says what lengthened it last", () => {
    const rows: readonly Row[] = [
      { at: 1, started: 0, heard: "rate_limited", retryAfter: 100, until: 101 },
      { at: 2, started: 0, heard: "server_error", until: 101 },
    ];
    expect(play(standard, rows)?.because).toBe("rate_limited at 1 s");
    const longer = { at: 3, started: 0, heard: "timeout", retryAfter: 200, until: 203 } as const;
    expect(play(standard, [...rows, longer])?.because).toBe("timeout at 3 s");
  });

  it("is not shortened by a success", () => {
    const state = play(standard, [
      { at: 1, started: 0, heard: "rate_limited", until: 61 },
      { at: 2, started: 0, heard: "success", until: 61 },
      { at: 3, started: 2, heard: "success", until: 61 },
      { at: 61, started: 60, heard: "success", until: "free" },
    ]);
    expect(state && isIncidentForgotten(state, 61 * second)).toBe(true);
  });
});

describe("an incident", () => {
  it("raises the step once, however many answers to requests under way come in", () => {
    play(ladder, [
      { at: 10, started: 1, heard: "rate_limited", until: 20 },
      { at: 11, started: 2, heard: "rate_limited", until: 21 },
      { at: 12, started: 9.9, heard: "rate_limited", until: 22 },
      { at: 13, started: 10, heard: "rate_limited", until: 23 },
      { at: 24, started: 23, heard: "rate_limited", until: 44 },
    ]);
  });

  it("raises each of the two ladders once", () => {
    const state = play(ladder, [
      { at: 10, started: 1, heard: "server_error", until: 15 },
      { at: 11, started: 2, heard: "rate_limited", until: 21 },
      { at: 12, started: 2, heard: "timeout", until: 21 },
      { at: 13, started: 3, heard: "rate_limited", until: 23 },
    ]);
    expect([state?.errorStep, state?.throttleStep]).toEqual([1, 1]);
  });

  it("lasts until an answer to a later request, also when its hold has long ended", () => {
    play(ladder, [
      { at: 10, started: 1, heard: "rate_limited", until: 20 },
      { at: 500, started: 2, heard: "rate_limited", until: 510 },
      { at: 511, started: 510, heard: "rate_limited", until: 531 },
    ]);
  });

  it("is not ended by the success of a request from before it", () => {
    const rows: readonly Row[] = [{ at: 10, started: 1, heard: "rate_limited", until: 20 }];
    const state = play(ladder, rows);
    expect(state && afterSuccess(state, 10 * second, 30 * second)).toBe(state);
    const after = state && afterSuccess(state, 10 * second + 1, 30 * second);
    expect(after && isIncidentForgotten(after, 30 * second)).toBe(true);
  });

  it("still holds for the first step when a late bad answer follows a success in its middle", () => {
    play(ladder, [
      { at: 10, started: 1, heard: "rate_limited", until: 20 },
      { at: 21, started: 2, heard: "rate_limited", retryAfter: 9, until: 30 },
      { at: 22, started: 20.5, heard: "success", until: 30 },
      { at: 25, started: 3, heard: "rate_limited", until: 35 },
      { at: 26, started: 3, heard: "server_error", until: 35 },
    ]);
  });

  it.each([
    { kind: "rate_limited", rule: ladder, held: 10 },
    { kind: "server_error", rule: standard, held: 5 },
    { kind: "timeout", rule: exponential, held: 5 },
  ] as const)(
    "whose step a success has reset still holds at a late $kind, for the first step",
    ({ kind, rule, held }) => {
      const state = play(rule, [
        { at: 10, started: 1, heard: kind, retryAfter: 30, until: 40 },
        { at: 20, started: 15, heard: "success", until: 40 },
        { at: 39, started: 2, heard: kind, until: 39 + held },
        { at: 50, started: 3, heard: kind, until: 50 + held },
      ]);
      expect(Number.isFinite(state?.untilUs)).toBe(true);
      expect(state?.because).toBe(`${kind} at 50 s`);
    },
  );

  it("is forgotten an hour after its hold", () => {
    const state = play(standard, [{ at: 10, started: 1, heard: "rate_limited", until: 70 }]);
    const endUs = 70 * second + INCIDENT_MEMORY_US;
    expect(state && [isIncidentForgotten(state, endUs - 1), isIncidentForgotten(state, endUs)]).toEqual([false, true]);
  });
});

describe("the probe", () => {
  const held: Incident = {
    untilUs: 100 * second,
    beganUs: 40 * second,
    throttleStep: 1,
    errorStep: 0,
    throttleRaised: true,
    errorRaised: false,
    probe: "due",
    probeAtUs: 0,
    because: "429",
  };

  it.each([
    { title: "may go when the hold ends", state: held, gap: 0, ready: 100 },
    {
      title: "is alone for five seconds",
      state: { ...held, probe: "out", probeAtUs: 101 * second },
      gap: 0,
      ready: 106,
    },
    {
      title: "is alone for one gap, if that is longer",
      state: { ...held, probe: "out", probeAtUs: 101 * second },
      gap: 20,
      ready: 121,
    },
    {
      title: "is not waited for once it is done",
      state: { ...held, probe: "done", probeAtUs: 101 * second },
      gap: 20,
      ready: 100,
    },
    {
      title: "that is overdue does not shorten a hold",
      state: { ...held, probe: "out", probeAtUs: 80 * second },
      gap: 0,
      ready: 100,
    },
  ] as const)("$title", ({ state, gap, ready }) => {
    expect(incidentReadyAt(state, gap * second)).toBe(ready * second);
    expect(PROBE_PATIENCE_US).toBe(5 * second);
  });

  it("is due again after every bad answer", () => {
    const out: Incident = { ...held, probe: "out", probeAtUs: 101 * second };
    const next = hear(out, standard, { at: 102, started: 101, heard: "rate_limited" });
    expect([next?.probe, next?.untilUs]).toEqual(["due", 162 * second]);
  });
});

describe("any answers", () => {
  it("only lengthen the hold, and raise no ladder faster than one step an incident", () => {
    const anyRow = fc.record({
      pause: fc.integer({ min: 0, max: 90 }),
      age: fc.integer({ min: 0, max: 120 }),
      heard: fc.constantFrom("rate_limited" as const, "server_error" as const, "timeout" as const, "success" as const),
      retryAfter: fc.constantFrom(0, 0, 1, 200),
    });
    const anyRule = fc.constantFrom(standard, exponential, ladder, compileRule({ backoff: "none" }));
    fc.assert(
      fc.property(anyRule, fc.array(anyRow, { maxLength: 40 }), (rule, rows) => {
        let state: Incident | undefined;
        let at = 200;
        let incidents = 0;
        for (const { pause, age, heard, retryAfter } of rows) {
          at += pause;
          const next = hear(state, rule, { at, started: at - age, heard, retryAfter });
          if (state === undefined || (next !== undefined && next.beganUs !== state.beganUs)) incidents += 1;
          if (next === undefined) incidents = 0;
          else {
            expect(next.untilUs).toBeGreaterThanOrEqual(state?.untilUs ?? 0);
            if (heard !== "success" && next !== state) expect(next.untilUs).toBeGreaterThan(at * second);
            expect(Math.max(next.throttleStep, next.errorStep)).toBeLessThanOrEqual(incidents);
          }
          if (state !== undefined && next === undefined) expect(at * second).toBeGreaterThanOrEqual(state.untilUs);
          state = next;
        }
      }),
      seeded(500),
    );
  });
});
