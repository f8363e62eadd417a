import { describe, expect, it } from "vitest";
import type { Target } from "../../src/index.js";
import { granted, rig, track } from "./support.js";

const api = { host: "x.example", intent: "api" };
const both = (...scopes: string[]) => ({ host: "x.example", scopes });

/** Lets each of `targets` wait, cancels those of `chosen`, and tells how many and which that were. */
async function cancelAmong(targets: readonly Target[], chosen: Target) {
  const { clock, limiter } = rig({ default: { rate: "1/h" }, scopes: { a: {}, b: {} } });
  granted(limiter.tryAcquire("x.example"));
  const waiters = targets.map((target) => track(limiter.acquire(target)));
  const count = limiter.cancelWaiting(chosen, "stop");
  await clock.settle();
  return { count, gone: waiters.map(({ state }) => state === "failed") };
}

describe("cancelWaiting of an intent or scopes", () => {
  it.each([
    ["after", [api, "x.example"], [true, false]],
    ["before", ["x.example", api], [false, true]],
  ] as const)(
    "reaches those who named the intent and nobody else, known to the policy or not, when a plain one comes %s",
    async (_title, targets, gone) => {
      expect(await cancelAmong(targets, api)).toEqual({ count: 1, gone });
      expect(await cancelAmong(targets, "x.example")).toEqual({ count: 2, gone: [true, true] });
    },
  );

  it("takes scopes in any order", async () => {
    const targets = [both("a", "b"), both("b", "a"), both("a"), "x.example"];
    expect(await cancelAmong(targets, both("b", "a"))).toEqual({ count: 2, gone: [true, true, false, false] });
    expect(await cancelAmong(targets, both("a"))).toEqual({ count: 1, gone: [false, false, true, false] });
  });

  it("tells two intents apart that the policy treats alike", async () => {
    const other = { host: "x.example", intent: "other" };
    expect(await cancelAmong([api, other], other)).toEqual({ count: 1, gone: [false, true] });
  });
});
