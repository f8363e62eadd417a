import { describe, expect, it } from "vitest";
import { defaultHoldRules, type HoldRules, type HostLogEntry, incidentAfter, incidentReadyAt } from "./incident.js";
import { playModel } from "./model.js";
import type { Script, Step } from "./script.js";
import type { Start } from "./trace.js";
import {
  answerGapViolation,
  answerWindowViolation,
  bucketViolation,
  concurrencyViolation,
  gapViolation,
  holdViolation,
  hourQuotaViolation,
  specViolation,
  windowViolation,
} from "./violations.js";

function at(...instants: readonly number[]): Start[] {
  return instants.map((atUs) => ({ atUs, cost: 1, releasedUs: atUs }));
}

describe("the checkers", () => {
  it("find a window with one start too many, and let a start exactly P later pass", () => {
    expect(windowViolation(at(0, 10, 99), { count: 2, perUs: 100 })).toContain("3 units");
    expect(windowViolation(at(0, 10, 100), { count: 2, perUs: 100 })).toBeUndefined();
    expect(windowViolation(at(50, 0, 60), { count: 2, perUs: 61 })).toContain("3 units");
  });

  it("count units in windows and leave out what was returned unused", () => {
    expect(windowViolation([{ atUs: 0, cost: 3 }, ...at(5)], { count: 3, perUs: 10 })).toContain("4 units");
    expect(windowViolation([{ atUs: 0, cost: 3, unused: true }, ...at(5)], { count: 3, perUs: 10 })).toBeUndefined();
  });

  it("find a window violation only from the given instant on", () => {
    expect(windowViolation(at(0, 1, 50), { count: 1, perUs: 10 }, 20)).toBeUndefined();
    expect(windowViolation(at(0, 1, 50, 51), { count: 1, perUs: 10 }, 20)).toContain("up to 51");
  });

  it("find a bucket that gave one microsecond too early, wherever the span begins", () => {
    const rate = { count: 2, perUs: 1000, burst: 2 };
    expect(bucketViolation(at(0, 0, 500, 1000), rate)).toBeUndefined();
    expect(bucketViolation(at(0, 0, 499), rate)).toContain("3 units from 0 to 499");
    expect(bucketViolation(at(0, 9000, 9000, 9499), rate)).toContain("from 9000 to 9499");
    expect(bucketViolation([{ atUs: 0, cost: 2 }, ...at(500), { atUs: 1499, cost: 2 }], rate)).toContain("to 1499");
    expect(bucketViolation([{ atUs: 0, cost: 2 }, ...at(500), { atUs: 1500, cost: 2 }], rate)).toBeUndefined();
  });

  it("count a bucket in whole numbers even where they are large", () => {
    const rate = { count: 1, perUs: 2 ** 40, burst: 1 };
    expect(bucketViolation(at(0, 2 ** 40 - 1), rate)).toBeDefined();
    expect(bucketViolation(at(0, 2 ** 40), rate)).toBeUndefined();
  });

  it("find two starts closer than the gap", () => {
    expect(gapViolation(at(0, 10, 19), 10)).toContain("10 and 19");
    expect(gapViolation(at(0, 10, 20), 10)).toBeUndefined();
    expect(gapViolation([...at(0), { atUs: 5, cost: 1, unused: true }, ...at(10)], 10)).toBeUndefined();
  });

  it("find a start beyond the places in flight, and see a place that was never given back return at maxHold", () => {
    const open: Start[] = [{ atUs: 0, cost: 1 }];
    expect(concurrencyViolation([...open, ...at(5)], 1)).toContain("1 in flight");
    expect(concurrencyViolation([...open, ...at(50)], 1, 50)).toBeUndefined();
    expect(concurrencyViolation([{ atUs: 0, cost: 1, releasedUs: 5 }, ...at(5)], 1)).toBeUndefined();
  });

  it("count from the answer where asked to", () => {
    const answered: Start[] = [{ atUs: 0, cost: 1, releasedUs: 7 }, ...at(16)];
    expect(answerGapViolation(answered, 10)).toContain("start at 16");
    expect(answerGapViolation(answered, 9)).toBeUndefined();
    expect(answerWindowViolation(answered, { count: 1, perUs: 10 })).toContain("2 units");
    expect(answerWindowViolation(answered, { count: 1, perUs: 9 })).toBeUndefined();
    expect(answerWindowViolation([{ atUs: 0, cost: 1 }, ...at(100)], { count: 1, perUs: 9 })).toContain("2 units");
  });

  it("find an hour with too many units, and a start inside a hold", () => {
    const lateUs = 3_599_999_999;
    expect(hourQuotaViolation(at(0, lateUs), 1, 0)).toContain("hour 0");
    expect(hourQuotaViolation(at(0, lateUs), 1, 1)).toBeUndefined();
    expect(holdViolation(at(5, 10, 20), [{ fromUs: 5, untilUs: 10 }])).toBeUndefined();
    expect(holdViolation(at(9), [{ fromUs: 5, untilUs: 10 }])).toContain("start at 9");
  });

  it("name the limit of a spec that was broken", () => {
    expect(specViolation(at(0, 5), { gapUs: 6, windows: [{ count: 9, perUs: 9 }] })).toMatch(/^gap/);
    expect(
      specViolation(at(0, 5), {
        windows: [
          { count: 9, perUs: 9 },
          { count: 1, perUs: 6 },
        ],
      }),
    ).toMatch(/^window/);
    expect(specViolation(at(0, 5), { gapUs: 5, concurrency: 1 })).toBeUndefined();
  });
});

describe("the slow model", () => {
  it("starts a backlog at the pace of a bucket, a gap, or a window, each exactly", () => {
    expect(starts(asks(4), { rate: { count: 3, perUs: 1000, burst: 2 } })).toEqual([0, 0, 334, 667]);
    expect(starts(asks(3), { gapUs: 250 })).toEqual([0, 250, 500]);
    expect(starts(asks(5), { windows: [{ count: 2, perUs: 100 }] })).toEqual([0, 0, 100, 100, 200]);
  });

  it("takes the strictest of several limits and lets nobody pass a heavy head", () => {
    const script = [ask(0, 2), ask(0, 3), ask(0, 1)];
    expect(starts(script, { windows: [{ count: 3, perUs: 100 }] })).toEqual([0, 100, 200]);
    expect(starts(asks(3), { windows: [{ count: 2, perUs: 100 }], gapUs: 70 })).toEqual([0, 70, 140]);
  });

  it("counts gap and window from the answer, and waits for it", () => {
    const script = [...asks(2), at1(40, { kind: "release", pick: 0, ending: { kind: "success" } })];
    expect(starts(script, { gapUs: 30, fromAnswer: true })).toEqual([0, undefined]);
    expect(starts([...script, at1(100, { kind: "look", host: "a" })], { gapUs: 30, fromAnswer: true })).toEqual([
      0, 70,
    ]);
  });

  it("orders by priority and age, and ages exactly", () => {
    const prioritised = (afterUs: number, priority: number): Script[number] =>
      at1(afterUs, { kind: "acquire", ask: { host: "a", cost: 1, priority } });
    const later = at1(10_000, { kind: "look", host: "a" });
    const script = [prioritised(0, 0), prioritised(0, 0), prioritised(10, 1), prioritised(1, 1), later];
    // One point is worth 10 µs: the second is as old as the third is important, and came first.
    expect(playModel(script, { specs: [{ gapUs: 100 }], ageingUs: 10 }).map((call) => call.startedUs)).toEqual([
      0, 100, 200, 300,
    ]);
    expect(playModel(script, { specs: [{ gapUs: 100 }], ageingUs: 12 }).map((call) => call.startedUs)).toEqual([
      0, 300, 100, 200,
    ]);
  });

  it("forgets the cancelled, the refused and the expired", () => {
    const script = [...asks(3), at1(10, { kind: "cancel", pick: 0 }), at1(500, { kind: "look", host: "a" })];
    expect(starts(script, { gapUs: 100 })).toEqual([0, undefined, 100]);
    const expiring: Script = [
      ...asks(1),
      at1(0, { kind: "acquire", ask: { host: "a", cost: 1, maxWaitUs: 99 } }),
      ...asks(1),
      at1(500, { kind: "look", host: "a" }),
    ];
    expect(starts(expiring, { gapUs: 100 })).toEqual([0, undefined, 100]);
    expect(playModel(expiring, { specs: [{ gapUs: 99 }] }).map((call) => call.startedUs)).toEqual([0, 99, 198]);
  });

  it("holds after a bad answer, then lets one probe go, then the rest", () => {
    const bad = { kind: "rate_limited", retryAfterMs: 2 } as const;
    const script = [
      ...asks(4),
      at1(100, { kind: "release", pick: 0, ending: bad }),
      at1(4000, { kind: "release", pick: 0, ending: { kind: "success" } }),
    ];
    const calls = playModel(script, { specs: [{ gapUs: 1000 }] });
    expect(calls.map((call) => call.startedUs)).toEqual([0, 2100, 4100, undefined]);
  });
});

describe("the slow incident", () => {
  const rules: HoldRules = { ...defaultHoldRules, cooldownUs: [100, 200, 400] };
  const end = (
    id: number,
    startedUs: number,
    atUs: number,
    kind: "rate_limited" | "success" | "unused",
  ): HostLogEntry => ({
    what: "end",
    id,
    startedUs,
    atUs,
    ending: { kind },
  });

  it("climbs once for all answers of one incident, and again for the next", () => {
    const first = [end(0, 0, 50, "rate_limited"), end(1, 10, 60, "rate_limited")];
    expect(incidentAfter(first, rules)).toMatchObject({ throttleStep: 1, untilUs: 160, probe: "due" });
    const second: HostLogEntry[] = [...first, { what: "start", id: 2, atUs: 160 }, end(2, 160, 170, "rate_limited")];
    expect(incidentAfter(second, rules)).toMatchObject({ throttleStep: 2, untilUs: 370 });
  });

  it("resets for a success started after it began, and for no other", () => {
    const before = [end(0, 0, 50, "rate_limited"), end(1, 10, 200, "success")];
    expect(incidentAfter(before, rules)).toMatchObject({ throttleStep: 1 });
    const after: HostLogEntry[] = [...before, { what: "start", id: 2, atUs: 210 }, end(2, 210, 220, "success")];
    expect(incidentAfter(after, rules)).toMatchObject({ throttleStep: 0, probe: "none" });
  });

  it("waits for the probe, passes the part on when it is returned, and not for ever", () => {
    const out: HostLogEntry[] = [end(0, 0, 50, "rate_limited"), { what: "start", id: 1, atUs: 150 }];
    expect(incidentReadyAt(out, rules)).toBe(5_000_150);
    expect(incidentAfter([...out, end(1, 150, 160, "unused")], rules).probe).toBe("due");
  });
});

function at1(afterUs: number, step: Step): Script[number] {
  return { afterUs, step };
}

function ask(afterUs: number, cost: number): Script[number] {
  return at1(afterUs, { kind: "acquire", ask: { host: "a", cost } });
}

function asks(count: number): Script {
  return Array.from({ length: count }, () => ask(0, 1));
}

function starts(script: Script, spec: Parameters<typeof playModel>[1]["specs"][0]): (number | undefined)[] {
  const answered = spec.fromAnswer === true ? script : [...script, at1(10_000, { kind: "look", host: "a" })];
  return playModel(answered, { specs: [spec] }).map((call) => call.startedUs);
}
