import { describe, expect, it } from "vitest";
import { type Limiter, type Permit, type PolicyInput, politely, type Target } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

describe("a heavy head at a key it shares", () => {
  const policy: PolicyInput = { default: {}, global: { rate: "1/s", burst: 10 } };

  it("lets lighter ones of other lanes go once its host is told to stay away", async () => {
    const { clock, limiter } = rig(policy);
    const open = await limiter.acquire("a.example", { cost: 10 });
    const heavy = waiting(limiter, "a.example", 10);
    const light = waiting(limiter, "b.example", 1);
    await clock.advance(100);
    expect(light()).toBeUndefined();
    open.release({ kind: "rate_limited", retryAfterMs: 60_000 });
    await clock.advance(900);
    expect(light()).toBe(1000);
    await clock.advance(60_000);
    // Its bucket was full again long before the host was free.
    expect(heavy()).toBe(60_100);
  });

  it("lets lighter ones that come later go as well", async () => {
    const { clock, limiter } = rig(policy);
    const open = await limiter.acquire("a.example", { cost: 10 });
    const heavy = waiting(limiter, "a.example", 10);
    open.release({ kind: "rate_limited", retryAfterMs: 60_000 });
    await clock.advance(2500);
    const light = waiting(limiter, "b.example", 1);
    await clock.settle();
    expect(light()).toBe(2500);
    await clock.advance(60_000);
    expect(heavy()).toBe(60_000);
  });

  it("lets those go that would not wait, once something else stops it for longer", async () => {
    const { clock, limiter } = rig(policy);
    const open = await limiter.acquire("a.example", { cost: 10 });
    const heavy = waiting(limiter, "a.example", 10);
    await clock.advance(2500);
    expect(limiter.tryAcquire("b.example")).toBeUndefined();
    expect(limiter.check("b.example")).toMatchObject({ proceed: false });
    open.release({ kind: "rate_limited", retryAfterMs: 60_000 });
    expect(limiter.check("b.example")).toEqual({ proceed: true, waitMs: 0 });
    expect(limiter.tryAcquire("b.example")?.startedAtMs).toBe(2500);
    expect((await limiter.acquire("c.example", { maxWait: 0 })).startedAtMs).toBe(2500);
    // The bucket is empty again.
    expect(limiter.tryAcquire("b.example")).toBeUndefined();
    await clock.advance(60_000);
    expect(heavy()).toBe(62_500);
  });

  it("keeps those back again once that is over before its turn", async () => {
    const { clock, limiter } = rig(policy);
    (await limiter.acquire("c.example", { cost: 10 })).release();
    const heavy = waiting(limiter, "a.example", 10);
    await clock.advance(2000);
    limiter.pause("a.example");
    limiter.pause("b.example");
    expect(limiter.explain("b.example").causes.map(({ limit }) => limit)).toEqual(["pause"]);
    limiter.resume("b.example");
    expect(limiter.tryAcquire("b.example")).toBeDefined();
    limiter.resume("a.example");
    expect(limiter.tryAcquire("b.example")).toBeUndefined();
    await clock.advance(9000);
    expect(heavy()).toBe(11_000);
  });

  it("lets them go once another lane's start makes its host the last to let it go", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 8000 }, scopes: { "key:x": { rate: "1/s", burst: 5 } } });
    const full = await limiter.acquire({ host: "c.example", scopes: ["key:x"] }, { cost: 5 });
    full.release();
    const heavy = waiting(limiter, { host: "a.example", scopes: ["key:x"] }, 5);
    const light = waiting(limiter, { host: "b.example", scopes: ["key:x"] }, 1);
    await clock.advance(500);
    // It does not need the key, so nothing keeps it back; from now on a.example lets nobody start before 8.5 s.
    const other = await limiter.acquire("a.example");
    expect(other.startedAtMs).toBe(500);
    await clock.advance(500);
    expect(light()).toBe(1000);
    await clock.advance(10_000);
    expect(heavy()).toBe(8500);
  });

  it("lets them go when a pause, or a start that was only recorded, holds its host", async () => {
    for (const hold of [
      (limiter: Limiter) => limiter.pause("a.example", "9s"),
      (limiter: Limiter) => limiter.record("a.example", "success"),
    ]) {
      const { clock, limiter } = rig({ default: { minDelay: 9000 }, scopes: { "key:x": { rate: "1/s", burst: 5 } } });
      (await limiter.acquire({ host: "c.example", scopes: ["key:x"] }, { cost: 5 })).release();
      const heavy = waiting(limiter, { host: "a.example", scopes: ["key:x"] }, 5);
      const light = waiting(limiter, { host: "b.example", scopes: ["key:x"] }, 1);
      await clock.advance(500);
      hold(limiter);
      await clock.advance(500);
      expect(light()).toBe(1000);
      await clock.advance(10_000);
      expect(heavy()).toBe(9500);
    }
  });

  it("stays where it is when somebody only looks", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1000 }, global: { quota: { count: 4, per: "hour" } } });
    (await limiter.acquire("b.example")).release({ kind: "rate_limited", retryAfterMs: 60_000 });
    waiting(limiter, "b.example", 3);
    // From now on the quota would stop it for longer, but it has not come to that yet.
    (await limiter.acquire("a.example")).release();
    for (const host of ["a.example", "b.example", "c.example"]) limiter.check(host);
    const light = waiting(limiter, "a.example", 1);
    await clock.advance(1000);
    expect(light()).toBe(1000);
  });

  it("still keeps them back while that key is what stops it", async () => {
    const { clock, limiter } = rig(policy);
    (await limiter.acquire("c.example", { cost: 10 })).release();
    const heavy = waiting(limiter, "a.example", 10);
    const light = waiting(limiter, "b.example", 1);
    await clock.advance(9999);
    expect([heavy(), light()]).toEqual([undefined, undefined]);
    await clock.advance(1001);
    expect([heavy(), light()]).toEqual([10_000, 11_000]);
  });

  it("is not starved by those who keep its two keys busy in turns", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1000 }, scopes: { "key:x": { rate: "2/s", burst: 4 } } });
    const endMs = 60_000;
    keepAsking(limiter, clock, "a.example", endMs);
    keepAsking(limiter, clock, { host: "b.example", scopes: ["key:x"] }, endMs);
    keepAsking(limiter, clock, { host: "c.example", scopes: ["key:x"] }, endMs);
    await clock.advance(3000);
    const heavy = waiting(limiter, { host: "a.example", scopes: ["key:x"] }, 4);
    await clock.advance(endMs);
    // Older than ageing both keys are kept for it: then it waits for at most its own units and one gap.
    expect(heavy()).toBeLessThanOrEqual(3000 + 10_000 + 2000 + 1000);
  });
});

function rig(policy: PolicyInput): { clock: VirtualClock; limiter: Limiter } {
  const clock = new VirtualClock();
  return { clock, limiter: politely(policy, { clock }) };
}

/** Asks, and tells when it started: undefined while it waits. */
function waiting(limiter: Limiter, target: Target, cost: number): () => number | undefined {
  let permit: Permit | undefined;
  void limiter.acquire(target, { cost }).then((granted) => {
    permit = granted;
    granted.release();
  });
  return () => permit?.startedAtMs;
}

/** Has two waiters there at all times, until the end. */
function keepAsking(limiter: Limiter, clock: VirtualClock, target: Target, endMs: number): void {
  const again = (): void => {
    if (clock.now() > endMs) return;
    void limiter.acquire(target).then((permit) => {
      permit.release();
      again();
    });
  };
  again();
  again();
}
