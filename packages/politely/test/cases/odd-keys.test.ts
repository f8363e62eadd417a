import { describe, expect, it } from "vitest";
import { expectBooks, granted, keyRig, many, rig } from "../verbs/support.js";

describe("a port that had limits of its own", () => {
  it.each([
    { title: "and only the port was used before", used: ["x.example:8443"] },
    { title: "and both were used before", used: ["x.example", "x.example:8443"] },
  ])("is counted with its host once they are taken away, $title", async ({ used }) => {
    const limits = { rate: "1/10s" } as const;
    const { clock, limiter } = rig({ default: limits, hosts: { "x.example:8443": limits } });
    for (const host of used) granted(limiter.tryAcquire(host)).release();
    await clock.advance(20_000);
    limiter.configure({ default: limits });
    expect(limiter.tryAcquire("x.example")).toBeDefined();
    expect(limiter.tryAcquire("x.example:8443")).toBeUndefined();
  });
});

describe("a group with capitals in its name", () => {
  it("finds the limits written for it", () => {
    const { limiter } = rig({
      default: { rate: "100/s", burst: 100 },
      groupBy: () => "GroupA",
      hosts: { GroupA: { rate: "1/h" } },
    });
    expect(limiter.explain("x.example").origin).toContain("hosts");
    granted(limiter.tryAcquire("x.example"));
    expect(limiter.tryAcquire("y.example")).toBeUndefined();
  });
});

describe("an intent or a scope in a target", () => {
  const target = { host: "a.example", intent: "search" };
  const policy = {
    default: {},
    hosts: { "a.example": { intents: { search: { minDelay: "10s" } } } },
    scopes: { "k:*": { minDelay: "10s" } },
  } as const;

  it.each([
    { title: "an intent", named: target },
    { title: "a scope", named: { host: "a.example", scopes: ["k:1"] } },
  ])("is what a reset makes forget its starts: $title", ({ named }) => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire(named));
    expect(limiter.check(named).proceed).toBe(false);
    limiter.reset(named);
    expect(limiter.check(named)).toEqual({ proceed: true, waitMs: 0 });
  });

  it("is what a pause holds, and not the rest of the host", () => {
    const { limiter } = rig(policy);
    limiter.pause(target);
    expect(limiter.tryAcquire("a.example")).toBeDefined();
    expect(limiter.tryAcquire(target)).toBeUndefined();
    limiter.resume(target);
    expect(limiter.tryAcquire(target)).toBeDefined();
  });

  it("may be named in a cost and in an answer, also when the host is exempt", () => {
    const { limiter } = rig({ default: {}, scopes: { "k:*": { rate: "1/s", burst: 10 } } });
    const local = { host: "localhost", scopes: ["k:1"] };
    expect(limiter.tryAcquire(local, { cost: { "k:1": 2 } })).toBeDefined();
    const permit = granted(limiter.tryAcquire(local));
    expect(() => permit.release({ kind: "rate_limited", scope: "k:1" })).not.toThrow();
  });
});

describe("books without statistics by host", () => {
  it("balance for a single key", () => {
    const { limiter } = keyRig({ rate: "1/s" }, { keepStats: 0 });
    granted(limiter.tryAcquire());
    expect(limiter.stats()).toMatchObject({ granted: 1, released: 0, inFlight: 1 });
    expectBooks(limiter.stats());
  });

  it("balance after the statistics begin anew with permits in flight", () => {
    const { limiter } = rig({ default: { rate: "1/s", burst: 5 } }, { keepStats: 0 });
    many(2, () => granted(limiter.tryAcquire("a.example")));
    limiter.reset(undefined, "stats");
    granted(limiter.tryAcquire("a.example"));
    const [stats] = limiter.stats();
    expect(stats).toMatchObject({ released: 0, inFlight: 3 });
    expectBooks(stats);
  });
});
