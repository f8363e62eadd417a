import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput, Target } from "../../src/index.js";
import { granted, rig } from "../verbs/support.js";

const places: readonly (readonly [string, Target, (limits: Limits) => PolicyInput])[] = [
  ["a host", "x.example", (limits) => ({ default: limits })],
  ["everything", "x.example", (limits) => ({ default: {}, global: limits })],
  ["a scope", { host: "x.example", scopes: ["p"] }, (limits) => ({ default: {}, scopes: { p: limits } })],
  [
    "a wildcard scope",
    { host: "x.example", scopes: ["p:1"] },
    (limits) => ({ default: {}, scopes: { "p:*": limits } }),
  ],
  [
    "an intent",
    { host: "x.example", intent: "api" },
    (limits) => ({ default: {}, hosts: { "x.example": { intents: { api: limits } } } }),
  ],
];

describe("looking at statistics", () => {
  it.each(places)("changes no later decision about %s", async (_title, target, policyOf) => {
    for (const isLooking of [false, true]) {
      const { clock, limiter } = rig(policyOf({ minDelay: "100ms" }));
      granted(limiter.tryAcquire(target)).release();
      await clock.advance(200);
      if (isLooking) limiter.stats();
      limiter.configure(policyOf({ minDelay: "10s" }));
      expect(limiter.check(target).waitMs).toBe(9_800);
    }
  });

  it("changes nothing for everything together, however many scopes came and went", async () => {
    const scopes = { "p:*": { minDelay: "100ms" } } as const;
    const { clock, limiter } = rig({ default: {}, scopes, global: { minDelay: 1 } });
    for (let index = 0; index < 12_000; index += 1) {
      granted(limiter.tryAcquire({ host: "x.example", scopes: [`p:${index}`] })).release();
      await clock.advance(1);
    }
    await clock.advance(200);
    limiter.stats();
    limiter.configure({ default: {}, scopes, global: { minDelay: "10s" } });
    expect(limiter.check("x.example").waitMs).toBe(9_799);
  });
});
