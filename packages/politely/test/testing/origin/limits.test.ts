import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OriginLimit, type OriginRequest, VirtualClock, VirtualOrigin } from "../../../src/testing/index.js";
import { beginLimit, quotaOf } from "../../../src/testing/origin/limits.js";
import { behaviourFields } from "../../../src/testing/origin/options.js";
import { seeded } from "../../laws/seeded.js";
import {
  fixedOracle,
  type History,
  leakyHeldBackMs,
  leakyOracle,
  type Oracle,
  type PlainRate,
  penaltyOracle,
  slidingOracle,
  tokenOracle,
} from "./oracle.js";

/** A limit and what the oracle of its kind says. */
interface Ruled {
  readonly limit: OriginLimit;
  readonly oracle: Oracle;
}

const wallMs = Date.UTC(2026, 4, 17, 11, 59, 58, 765);
const rate = fc.record<PlainRate>({ count: fc.integer({ min: 1, max: 6 }), per: fc.integer({ min: 1, max: 3_000 }) });
const burst = fc.integer({ min: 0, max: 6 });

const sliding = rate.map(
  (each): Ruled => ({ limit: { kind: "sliding-window", rate: each }, oracle: slidingOracle(each) }),
);
const fixed = rate.map(
  (each): Ruled => ({
    limit: { kind: "fixed-window", rate: each },
    oracle: fixedOracle(each, BigInt(wallMs) * 1_000n),
  }),
);
const token = fc.tuple(rate, fc.integer({ min: 1, max: 6 })).map(
  ([each, most]): Ruled => ({
    limit: { kind: "token-bucket", rate: each, burst: most },
    oracle: tokenOracle(each, most),
  }),
);
const leaky = fc.tuple(rate, burst).map(
  ([each, most]): Ruled => ({
    limit: { kind: "leaky-bucket", rate: each, burst: most, nodelay: true },
    oracle: leakyOracle(each, most),
  }),
);
const anyLimit = fc.oneof(sliding, fixed, token, leaky);

/** Gaps between arrivals in microseconds: often none, often around a period, sometimes long. */
const gapsUs = fc.array(
  fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 3_000_000 })),
  { minLength: 1, maxLength: 40 },
);

/** Sends a request after each gap, on a clock that moves at once. */
function arrive(limits: readonly OriginLimit[], gaps: readonly number[]): readonly OriginRequest[] {
  const clock = new VirtualClock({ wallMs });
  const origin = new VirtualOrigin({ clock, limits });
  let atUs = 0;
  for (const gapUs of gaps) {
    atUs += gapUs;
    clock.stall(Math.max(0, atUs / 1_000 - clock.now()));
    void origin.fetch("https://a.test/");
  }
  return origin.requests;
}

function microseconds(ms: number): number {
  return Math.round(ms * 1_000);
}

describe("every kind of limit", () => {
  it("decides as a slow reading of its definition does, alone and together with others, and knows the true wait", () => {
    fc.assert(
      fc.property(fc.array(anyLimit, { minLength: 1, maxLength: 3 }), gapsUs, (ruled, gaps) => {
        const letInUs: number[] = [];
        const history: History = { letInUs, arrivalsUs: [] };
        const allows = (us: number): boolean => ruled.every(({ oracle }) => oracle(history, us));
        for (const { atMs, refusedBy, trueWaitMs } of arrive(
          ruled.map(({ limit }) => limit),
          gaps,
        )) {
          const nowUs = microseconds(atMs);
          expect([atMs, refusedBy === undefined]).toEqual([atMs, allows(nowUs)]);
          if (refusedBy === undefined) letInUs.push(nowUs);
          else {
            const letInAtUs = nowUs + microseconds(trueWaitMs);
            expect([letInAtUs - nowUs, allows(letInAtUs), allows(letInAtUs - 1)]).toEqual([
              letInAtUs - nowUs,
              true,
              false,
            ]);
          }
        }
      }),
      seeded(500),
    );
  });

  it("is named as the one that refuses when it is the first that does", () => {
    fc.assert(
      fc.property(fc.array(anyLimit, { minLength: 2, maxLength: 4 }), gapsUs, (ruled, gaps) => {
        const letInUs: number[] = [];
        const limits = ruled.map(({ limit }, index) => ({ ...limit, name: `limit ${index}` }));
        for (const { atMs, refusedBy } of arrive(limits, gaps)) {
          const nowUs = microseconds(atMs);
          const first = ruled.findIndex(({ oracle }) => !oracle({ letInUs, arrivalsUs: [] }, nowUs));
          expect(refusedBy).toBe(first === -1 ? undefined : `limit ${first}`);
          if (first === -1) letInUs.push(nowUs);
        }
      }),
      seeded(200),
    );
  });
});

describe("what a limit says about itself", () => {
  /** How many more would be let in at this instant. */
  function howMany(oracle: Oracle, letInUs: readonly number[], us: number): number {
    const all = [...letInUs];
    while (oracle({ letInUs: all, arrivalsUs: [] }, us)) all.push(us);
    return all.length - letInUs.length;
  }

  it("is how many more would be let in now, and when that gets better", () => {
    fc.assert(
      fc.property(anyLimit, gapsUs, ({ limit, oracle }, gaps) => {
        const [rule] = behaviourFields.limits([limit], "limits");
        const state = beginLimit(rule, wallMs * 1_000);
        const letInUs: number[] = [];
        const look = (nowUs: number): void => {
          const [quota] = quotaOf(state, nowUs);
          if (quota === undefined) throw new Error("This kind of limit has a quota.");
          const { count, remaining, resetAtUs } = quota;
          const beforeReset = howMany(oracle, letInUs, resetAtUs - 1);
          expect(remaining).toBe(howMany(oracle, letInUs, nowUs));
          expect(resetAtUs).toBeGreaterThanOrEqual(nowUs);
          if (remaining === 0) expect([howMany(oracle, letInUs, resetAtUs) > 0, beforeReset]).toEqual([true, 0]);
          else expect(howMany(oracle, letInUs, resetAtUs)).toBe(count);
          if (remaining > 0 && remaining < count) expect(beforeReset).toBeLessThan(count);
          // Only a fixed window has a next one to wait for when nothing is used.
          if (remaining === count && limit.kind !== "fixed-window") expect(resetAtUs).toBe(nowUs);
        };
        let nowUs = 0;
        for (const gapUs of gaps) {
          nowUs += gapUs;
          look(nowUs);
          if (state.waitUs(nowUs) > 0) continue;
          state.take?.(nowUs);
          letInUs.push(nowUs);
          look(nowUs);
        }
      }),
      seeded(300),
    );
  });
});

describe("a leaky bucket that holds back", () => {
  it("does so for as many milliseconds as nginx would", () => {
    fc.assert(
      fc.property(rate, burst, fc.boolean(), gapsUs, (each, most, nodelay, gaps) => {
        const limit: OriginLimit = { kind: "leaky-bucket", rate: each, burst: most, nodelay };
        const letInUs: number[] = [];
        for (const request of arrive([limit], gaps)) {
          const nowUs = microseconds(request.atMs);
          if (request.refusedBy !== undefined) continue;
          expect(request.heldBackMs).toBe(nodelay ? 0 : leakyHeldBackMs(each, letInUs, nowUs));
          letInUs.push(nowUs);
        }
      }),
      seeded(300),
    );
  });
});

describe("a penalty box", () => {
  const box = fc.record({
    rate,
    banMs: fc.integer({ min: 1, max: 4_000 }),
    lengthenMs: fc.option(fc.integer({ min: 0, max: 4_000 }), { nil: undefined }),
  });

  it("bans as a slow reading of its definition does, beside another limit", () => {
    fc.assert(
      fc.property(box, sliding, gapsUs, ({ lengthenMs, ...rest }, other, gaps) => {
        const limit = { kind: "penalty-box" as const, ...rest, ...(lengthenMs === undefined ? {} : { lengthenMs }) };
        const oracle = penaltyOracle(limit, rest.rate);
        const letInUs: number[] = [];
        const arrivalsUs: number[] = [];
        for (const { atMs, refusedBy } of arrive([limit, other.limit], gaps)) {
          const nowUs = microseconds(atMs);
          const isRefused = !other.oracle({ letInUs, arrivalsUs }, nowUs);
          const isBanned = !oracle({ letInUs, arrivalsUs }, nowUs);
          arrivalsUs.push(nowUs);
          expect(refusedBy).toBe(isBanned ? "penalty-box" : isRefused ? "sliding-window" : undefined);
          if (refusedBy === undefined) letInUs.push(nowUs);
        }
      }),
      seeded(500),
    );
  });
});

describe("a limit on concurrency", () => {
  it("never lets in more at once than it says, and refuses only when so many are in flight", async () => {
    const calls = fc.array(
      fc.record({ gapMs: fc.integer({ min: 0, max: 20 }), latencyMs: fc.integer({ min: 0, max: 60 }) }),
      {
        minLength: 1,
        maxLength: 40,
      },
    );
    await fc.assert(
      fc.asyncProperty(calls, fc.integer({ min: 1, max: 5 }), async (list, count) => {
        const clock = new VirtualClock();
        const answers = (call: { readonly index: number }) => ({ latencyMs: list[call.index].latencyMs });
        const origin = new VirtualOrigin({ clock, limits: [{ kind: "concurrency", count }], answers });
        let atMs = 0;
        for (const { gapMs } of list) {
          atMs += gapMs;
          clock.setTimer(atMs, () => void origin.fetch("https://a.test/"));
        }
        await clock.runToEnd();
        const stays: { fromMs: number; toMs: number }[] = [];
        let peak = 0;
        for (const [index, request] of origin.requests.entries()) {
          const inFlight = stays.filter(({ toMs }) => toMs > request.atMs).length;
          expect(request.status).toBe(inFlight < count ? 200 : 429);
          if (request.status === 200) {
            const toMs = request.atMs + list[index].latencyMs;
            stays.push({ fromMs: request.atMs, toMs });
            peak = Math.max(peak, inFlight + 1);
          }
        }
        // Refusals take no time here, so at their instant they are the one that is too many.
        expect(origin.peakInFlight).toBe(origin.refused > 0 ? count + 1 : peak);
        expect(origin.inFlight).toBe(0);
      }),
      seeded(100),
    );
  });
});
