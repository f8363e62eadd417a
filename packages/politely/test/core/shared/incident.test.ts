import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyOf, type SettleTerms, type TakenStart } from "../../../src/testing/store/operations.js";
import { anyEnding, spanUs } from "../../laws/arbitraries.js";
import { seeded } from "../../laws/seeded.js";
import { type HoldRules, type HostLogEntry, incidentAfter, incidentReadyAt } from "../../oracle/incident.js";
import { type Ending, pickFrom } from "../../oracle/script.js";
import { Place } from "./place.js";

const second = 1_000_000;

type Deed =
  | { readonly do: "wait"; readonly us: number }
  | { readonly do: "take"; readonly horizonUs: number }
  | { readonly do: "answer"; readonly pick: number; readonly ending: Ending; readonly isOver: boolean };

const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), us: fc.oneof(spanUs(60), spanUs(20_000)) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("take" as const), horizonUs: fc.constantFrom(0, 0, 50_000) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      pick: fc.nat({ max: 5 }),
      ending: anyEnding,
      isOver: fc.boolean(),
    }),
  },
);

const anyRules: fc.Arbitrary<HoldRules> = fc.record({
  cooldownUs: fc.array(
    fc.integer({ min: 1, max: 20 }).map((seconds) => seconds * second),
    { minLength: 1, maxLength: 3 },
  ),
  backoff: fc.record({
    kind: fc.constantFrom("none" as const, "linear" as const, "exponential" as const),
    baseUs: spanUs(3_000),
    maxUs: fc.constant(9 * second),
  }),
  patienceUs: fc.constant(5 * second),
});

/** Plays deeds at one key and says what differs from the slow incident. */
function differences(rules: HoldRules, deeds: readonly Deed[]): string[] {
  const place = new Place();
  const host = keyOf({});
  const log: HostLogEntry[] = [];
  const found: string[] = [];
  const open: { readonly id: number; readonly taken: TakenStart; readonly grantedUs: number; isReported: boolean }[] =
    [];
  let starts = 0;
  const take = (horizonUs: number): void => {
    const readyUs = incidentReadyAt(log, rules);
    const { reply, starts: granted } = place.take({ host }, { horizonUs });
    for (const taken of granted) {
      const atUs = taken.start.startedUs;
      if (atUs !== Math.max(place.nowUs, readyUs)) found.push(`start at ${atUs}, allowed from ${readyUs}`);
      log.push({ what: "start", id: starts, atUs });
      open.push({ id: starts, taken, grantedUs: place.nowUs, isReported: false });
      starts += 1;
    }
    if (granted.length > 0) return;
    if (readyUs <= place.nowUs) found.push(`refused at ${place.nowUs}, allowed from ${readyUs}`);
    if (reply.stop?.kind === "cooldown" && reply.stop.readyUs !== readyUs) found.push(`told ${reply.stop.readyUs}`);
  };
  for (const deed of deeds) {
    // Two things at one instant have no order.
    place.wait(1);
    if (deed.do === "wait") place.wait(deed.us);
    else if (deed.do === "take") take(deed.horizonUs);
    else answer(deed);
  }

  function answer({ pick, ending, isOver }: Extract<Deed, { do: "answer" }>): void {
    const one = pickFrom(
      open.filter(({ taken }) => ending.kind === "unused" || taken.start.startedUs <= place.nowUs),
      pick,
    );
    if (one === undefined) return;
    const isReport = !isOver && ending.kind !== "neutral" && ending.kind !== "unused" && !one.isReported;
    if (one.isReported && ending.kind === "unused") return;
    one.isReported = isReport;
    if (!isReport) open.splice(open.indexOf(one), 1);
    const retryAfterMs = "retryAfterMs" in ending ? (ending.retryAfterMs ?? 0) : 0;
    const terms: SettleTerms = {
      answer: { kind: ending.kind, retryAfterUs: retryAfterMs > 0 ? retryAfterMs * 1000 : 0 },
      isOver: !isReport,
      cooldownUs: rules.cooldownUs,
      backoff: { ...rules.backoff, jitter: 0 },
    };
    // Granted ahead, a start belongs to what begins before its instant.
    const startedUs = Math.min(one.taken.start.startedUs, one.grantedUs);
    const { steps } = place.settle(["host"], one.taken, terms);
    log.push({ what: "end", id: one.id, atUs: place.nowUs, startedUs, ending });
    const { throttleStep, errorStep } = incidentAfter(log, rules);
    const step = ending.kind === "rate_limited" ? throttleStep : errorStep;
    if (steps[0] > 0 && steps[0] !== Math.max(1, step)) found.push(`step ${steps[0]}, not ${step}`);
  }
  return found;
}

describe("a cooldown that several processes share", () => {
  it("holds, climbs, probes and ends as one incident, whoever hears which answer", () => {
    fc.assert(
      fc.property(anyRules, fc.array(anyDeed, { minLength: 5, maxLength: 60 }), (rules, deeds) => {
        expect(differences(rules, deeds)).toEqual([]);
      }),
      seeded(400),
    );
  });

  it("counts all starts of one large take as made when that was granted, so that their answers are one incident", () => {
    const place = new Place();
    const host = keyOf({ rateCount: 1, ratePerUs: 2 });
    const { starts } = place.take({ host }, { count: 5_000, horizonUs: 50_000 });
    const throttled: SettleTerms = { answer: { kind: "rate_limited" }, cooldownUs: [second, 10 * second] };
    const first = place.wait(1_000).settle(["host"], starts[0], throttled);
    const last = place.wait(10_000).settle(["host"], starts[4_999], throttled);
    expect([first.steps[0], last.steps[0]]).toEqual([1, 1]);
  });

  it("waits for a probe that nobody reports on for 5 s, or for one gap if that is longer", () => {
    for (const gapUs of [second, 8 * second]) {
      const place = new Place();
      const host = keyOf({ gapUs });
      const taken = place.start({ host });
      place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: 20 * second } });
      const probe = place.wait(20 * second).start({ host });
      place.nowUs = probe.start.startedUs + Math.max(5 * second, gapUs) - 1;
      expect(place.fit({ host }, 1)).toBe(0);
      expect(place.wait(1).fit({ host }, 1)).toBe(1);
    }
  });

  it("is forgotten after an hour: the next incident begins at the first step, and nobody probes", () => {
    const place = new Place();
    place.isElephant = true;
    const host = keyOf({ windows: [9, second, 1] });
    const throttled: SettleTerms = { answer: { kind: "rate_limited" }, cooldownUs: [second, 10 * second] };
    place.settle(["host"], place.start({ host }), throttled);
    place.wait(3_601 * second);
    expect(place.fit({ host }, 3)).toBe(3);
    expect(place.settle(["host"], place.wait(second).start({ host }), throttled).steps).toEqual([1]);
  });
});
