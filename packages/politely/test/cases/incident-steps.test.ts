import { describe, expect, it } from "vitest";
import { granted, keyRig, only, rig } from "../verbs/support.js";

const ladder = ["10s", "20s", "40s"] as const;

describe("the step of an incident", () => {
  it.each([
    { title: "whether or not anybody looked: nobody did", isSeen: false },
    { title: "whether or not anybody looked: somebody did", isSeen: true },
  ])("is forgotten two hours later, $title", async ({ isSeen }) => {
    const { clock, limiter } = rig({ default: { rate: "1/s", cooldown: ladder } });
    limiter.record("a.example", "rate_limited");
    await clock.advance(7_200_000);
    if (isSeen) limiter.stats();
    limiter.record("a.example", "rate_limited");
    expect(limiter.stats("a.example")?.cooldownMs).toBe(10_000);
  });

  it("of a scope begins again after a success", async () => {
    const { clock, limiter, events } = rig({ default: {}, scopes: { "proxy:*": { cooldown: ladder } } });
    const target = { host: "a.example", scopes: ["proxy:x"] };
    granted(limiter.tryAcquire(target)).release({ kind: "rate_limited", scope: "proxy:x" });
    await clock.advance(20_000);
    for (let turn = 0; turn < 5; turn += 1) {
      granted(limiter.tryAcquire(target)).release("success");
      await clock.advance(1_000);
    }
    granted(limiter.tryAcquire(target)).release({ kind: "rate_limited", scope: "proxy:x" });
    expect(only(events, "cooldown").map(({ step }) => step)).toEqual([1, 1]);
  });
});

describe("a start returned unused after something else changed", () => {
  it("does not take a later start out of a window that was reset in between", async () => {
    const { clock, limiter } = keyRig({ window: "1/10s" });
    const returned = granted(limiter.tryAcquire());
    await clock.advance(1_000);
    limiter.reset();
    expect(limiter.tryAcquire()).toBeDefined();
    returned.release("unused");
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("gives nothing back that the bucket has long refilled, also after the cost of a later start was corrected", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 10 });
    const returned = granted(limiter.tryAcquire({ cost: 5 }));
    await clock.advance(20_000);
    granted(limiter.tryAcquire()).release("success", { cost: 10 });
    expect(limiter.stats().tokens).toBe(0);
    returned.release("unused");
    expect(limiter.stats().tokens).toBe(0);
  });
});
