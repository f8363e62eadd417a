import { describe, expect, it } from "vitest";
import { failure, granted, keyRig, rig } from "./support.js";

const target = { host: "x.org", intent: "search", scopes: ["key:abc"] };
const policy = {
  hosts: { "x.org": { rate: "1/s", burst: 10, window: "10/min", intents: { search: { window: "10/h" } } } },
  global: { window: "20/min" },
  scopes: { "key:*": { window: "10/min" } },
} as const;

describe("cost", () => {
  it("as a number applies to rate, window and quota of every scope", () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire(target, { cost: 4 }));
    expect(limiter.stats("x.org")).toMatchObject({ tokens: 6, window: { calls: 4 } });
    expect(limiter.tryAcquire({ host: "y.org", scopes: ["key:abc"] })).toBeDefined();
    expect(limiter.explain({ host: "x.org" }).proceed).toBe(true);
  });

  it("counts one request for gap and concurrency", async () => {
    const { limiter } = keyRig({ minDelay: "1s", concurrency: 2, window: "100/min" });
    granted(limiter.tryAcquire({ cost: 50 }));
    expect(limiter.check().waitMs).toBe(1_000);
    expect(limiter.stats().inFlight).toBe(1);
  });

  it("in a record is set by kind, and what is not named costs 1", () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire("x.org", { cost: { rate: 5 } }));
    expect(limiter.stats("x.org")).toMatchObject({ tokens: 5, window: { calls: 1 } });
  });

  it("in a record is set by scope, which beats a kind", () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire(target, { cost: { host: 3, window: 9 } }));
    expect(limiter.stats("x.org")).toMatchObject({ tokens: 7, window: { calls: 3 } });
    // The key has 9 of 10 spent.
    granted(limiter.tryAcquire({ host: "y.org", scopes: ["key:abc"] }));
    expect(limiter.check({ host: "z.org", scopes: ["key:abc"] }).proceed).toBe(false);
  });

  it("in a record can be for the global limits or a named scope alone", () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire(target, { cost: { global: 20, "key:abc": 2, intent: 3 } }));
    expect(limiter.stats("x.org")).toMatchObject({ tokens: 9, window: { calls: 1 } });
    expect(limiter.check("elsewhere.org").proceed).toBe(false);
  });

  it("with a name that fits nothing is an error that names it", async () => {
    const { limiter } = rig(policy);
    const error = await failure(limiter.acquire("x.org", { cost: { tokens: 5 } }));
    expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
    expect(String(error)).toContain("tokens");
    expect(limiter.stats("x.org")?.totalRequests ?? 0).toBe(0);
  });

  it("above what fits one of the scopes is an error, and takes nothing from the others", async () => {
    const { limiter } = rig(policy);
    const error = await failure(limiter.acquire("x.org", { cost: 11 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(limiter.tryAcquire("x.org", { cost: 10 })).toBeDefined();
  });
});

describe("a cost corrected at release", () => {
  it("gives back what was too much", () => {
    const { limiter } = keyRig({ rate: "1/s", burst: 10, window: "10/min", quota: { count: 10, per: "day" } });
    const permit = granted(limiter.tryAcquire({ cost: 8 }));
    permit.release("success", { cost: 3 });
    expect(limiter.stats()).toMatchObject({ tokens: 7, window: { calls: 3, remaining: 7 } });
    expect(limiter.tryAcquire({ cost: 7 })).toBeDefined();
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("owes what was too little", () => {
    const { limiter } = keyRig({ rate: "1/s", burst: 10, window: "10/min" });
    granted(limiter.tryAcquire({ cost: 2 })).release("success", { cost: 9 });
    expect(limiter.stats()).toMatchObject({ tokens: 1, window: { calls: 9, remaining: 1 } });
  });

  it("may leave a bucket owing more than it holds, and the next one waits for it", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 10 });
    granted(limiter.tryAcquire()).release("success", { cost: 20 });
    expect(limiter.check().waitMs).toBe(11_000);
    const next = limiter.acquire();
    await clock.advance(11_000);
    expect((await next).startedAtMs).toBe(11_000);
  });

  it("may be 0, and the request still counts for the gap", () => {
    const { limiter } = keyRig({ minDelay: "1s", window: "5/min" });
    granted(limiter.tryAcquire({ cost: 5 })).release("success", { cost: 0 });
    expect(limiter.stats().window).toMatchObject({ calls: 0, remaining: 5 });
    expect(limiter.check().waitMs).toBe(1_000);
  });

  it("may be a record", () => {
    const { limiter } = keyRig({ rate: "1/s", burst: 10, window: "10/min" });
    granted(limiter.tryAcquire({ cost: { rate: 5, window: 5 } })).release("success", { cost: { rate: 2, window: 5 } });
    expect(limiter.stats()).toMatchObject({ tokens: 8, window: { calls: 5 } });
  });

  it("lets those waiting go earlier when something comes back", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 10 });
    const big = granted(limiter.tryAcquire({ cost: 10 }));
    const waiting = limiter.acquire({ cost: 5 });
    await clock.advance(1_000);
    big.release("success", { cost: 1 });
    await clock.settle();
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("of an old start changes only what is still inside the window", async () => {
    const { clock, limiter } = keyRig({ window: "10/s" });
    const permit = granted(limiter.tryAcquire({ cost: 10 }));
    await clock.advance(1_000);
    granted(limiter.tryAcquire({ cost: 6 }));
    permit.release("success", { cost: 1 });
    expect(limiter.stats().window).toMatchObject({ calls: 6, remaining: 4 });
  });
});
