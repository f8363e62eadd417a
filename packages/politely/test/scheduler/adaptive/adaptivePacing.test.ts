import { describe, expect, it } from "vitest";
import { NEUTRAL } from "../../../src/engine/outcome.js";
import { compileRule } from "../../../src/policy/compileRule.js";
import type { Limits } from "../../../src/policy/types.js";
import { AdaptivePacing } from "../../../src/scheduler/adaptivePacing.js";
import { oneKey } from "../oneKey.js";

const second = 1_000_000;
const refused = { ...NEUTRAL, kind: "rate_limited", because: "429" } as const;

/** One key under `limits` that was refused twice, and how to give it other limits. */
function refusedKey(limits: Limits) {
  const { ledger, slot } = oneKey(limits);
  const pacing = new AdaptivePacing(ledger, () => undefined);
  for (const atS of [1, 10]) {
    pacing.hear(refused, { slot, startedUs: atS * second - 1, nowUs: atS * second, latencyUs: undefined });
  }
  const configure = (next: Limits): number | undefined => {
    ledger.slab.setProfileNumber(slot, ledger.profiles.numberOf(compileRule(next)));
    pacing.conform(slot);
    return ledger.slowdowns.get(slot, "adaptive")?.gapUs;
  };
  return { ledger, slot, configure };
}

describe("a change of limits", () => {
  it("keeps the gap within the new bounds", () => {
    const { configure } = refusedKey({ rate: "1/s", adaptive: true });
    expect(configure({ rate: "2/s", adaptive: true })).toBe(4 * second);
    expect(configure({ rate: "2/s", adaptive: { min: "1/3s" } })).toBe(3 * second);
  });

  it("that takes adaptive away takes the slowdown away, and giving it back forgives nothing", () => {
    const { ledger, slot, configure } = refusedKey({ rate: "1/s", adaptive: true });
    expect(configure({ rate: "1/s" })).toBeUndefined();
    expect(configure({ rate: "1/s", adaptive: true })).toBe(4 * second);
    expect(ledger.slowdowns.get(slot, "adaptive")?.because).toBe("2 of its last 2 answers were bad, the latest: 429");
  });

  it("says nothing of keys that have learned nothing", () => {
    const { ledger, slot } = oneKey({ rate: "1/s", adaptive: true });
    new AdaptivePacing(ledger, () => undefined).conform(slot);
    expect(ledger.slowdowns.get(slot, "adaptive")).toBeUndefined();
  });
});

describe("rows", () => {
  it("forget what was learned with everything else, and keep it when another source stops asking", () => {
    const { ledger, slot } = refusedKey({ rate: "1/s", adaptive: true });
    ledger.slowdowns.set(slot, "robots", { gapUs: 5, holdUntilUs: 0, untilUs: 99 * second, because: "Crawl-delay" });
    ledger.slowdowns.set(slot, "robots", undefined);
    expect(ledger.slowdowns.learned.size).toBe(1);
    expect(ledger.isFresh(slot, 3000 * second)).toBe(false);
    expect(ledger.isFresh(slot, 3610 * second)).toBe(true);
    ledger.forget(slot);
    expect(ledger.slowdowns.learned.size).toBe(0);
  });
});
