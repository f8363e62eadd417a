import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { LimiterEvent } from "../../src/observe/types.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Store } from "../../src/stores/store.js";
import { Fleet, leastGap, mostWithin } from "./fleet.js";

function outages(limiter: SharedLimiter): string[] {
  const messages: string[] = [];
  limiter.subscribe((event: LimiterEvent) => {
    if (event.type === "outage") messages.push(event.message);
  });
  return messages;
}

it("is told with events that say whether it is away now", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "10/s" });
  const away: boolean[] = [];
  limiter.subscribe((event) => {
    if (event.type === "outage") away.push(event.isAway);
  });
  fleet.mood = "refusing";
  const work = fleet.demand(limiter, 1);
  await fleet.clock.advance(10_000);
  await work;
  expect(away).toEqual([true]);
  fleet.mood = "well";
  await fleet.clock.advance(60_000);
  expect(away).toEqual([true, false]);
});

describe("while the store is away", () => {
  it.each(["refusing", "silent"] as const)(
    "closed: a %s store means a StoreError within 10 s, and nothing granted",
    async (mood) => {
      const fleet = new Fleet();
      const limiter = fleet.add({ rate: "10/s" }, { outage: "closed" });
      const messages = outages(limiter);
      fleet.mood = mood;
      const refused = Promise.allSettled([limiter.acquire("x.org"), limiter.tryAcquire("y.org")]);
      await fleet.clock.advance(10_000);
      for (const result of await refused) {
        expect(result).toMatchObject({ status: "rejected", reason: { code: "POLITELY_STORE" } });
      }
      expect(messages[0]).toContain("virtual is away");
      const stats = await limiter.stats();
      expect(stats.find(({ host }) => host === "x.org")).toMatchObject({ granted: 0, refused: 1 });
    },
  );

  it("closed: those who wait when it goes are told, too, and it works again afterwards", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/2s" }, { outage: "closed" });
    await fleet.demandNow(limiter, 1);
    const waiting = limiter.acquire("x.org").catch((error: unknown) => error);
    await fleet.clock.advance(100);
    fleet.mood = "refusing";
    await fleet.clock.advance(12_000);
    expect(await waiting).toBeInstanceOf(StoreError);
    fleet.mood = "well";
    await fleet.clock.advance(5_000);
    await fleet.demandNow(limiter, 1);
    expect(fleet.starts).toHaveLength(2);
  });

  it("open: everything passes, and is counted when it is back", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "5/h" }, { outage: "open" });
    fleet.mood = "refusing";
    const work = fleet.demand(limiter, 8);
    await fleet.clock.advance(10_000);
    await work;
    expect(fleet.starts).toHaveLength(8);
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    expect((await fleet.now(limiter.check("x.org"))).proceed).toBe(false);
  });

  it("share: each of n processes keeps an n-th of the limit, and together they keep the whole", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3, 4].map(() => fleet.add({ rate: "8/s" }));
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    // Each learns of the others when it asks again.
    await fleet.clock.advance(31_000);
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    fleet.mood = "refusing";
    const before = fleet.starts.length;
    const work = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 40)));
    await fleet.clock.advance(14_000);
    const during = fleet.startsUs().slice(before);
    expect(during.length).toBeGreaterThan(60);
    expect(mostWithin(during, 1_000_000)).toBeLessThanOrEqual(8 + 4);
    await fleet.clock.advance(30_000);
    await work;
  });

  it("share: one that never met the store takes a tenth", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    fleet.mood = "silent";
    const work = fleet.demand(limiter, 5);
    await fleet.clock.advance(20_000);
    await work;
    expect(leastGap(fleet.startsUs())).toBeGreaterThanOrEqual(1_000_000);
  });

  it("share: coming back makes no burst", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2].map(() => fleet.add({ window: "10/min" }));
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    await fleet.clock.advance(31_000);
    await fleet.now(Promise.all(limiters.map((limiter) => fleet.demand(limiter, 1))));
    const work = Promise.all(limiters.map((limiter) => fleet.demand(limiter, 12)));
    fleet.mood = "refusing";
    await fleet.clock.advance(20_000);
    const messages = outages(limiters[0]);
    fleet.mood = "well";
    await fleet.clock.advance(300_000);
    await work;
    expect(messages.some((message) => message.includes("is back after"))).toBe(true);
    // The starts of the outage are of another timeline only in real stores; here all are of one clock.
    const after = fleet.startsUs().filter((at) => at > 51_300_000 + 4_000_000);
    expect(mostWithin(after, 60_000_000)).toBeLessThanOrEqual(10);
    expect(mostWithin(fleet.startsUs(), 60_000_000)).toBeLessThanOrEqual(20);
  });

  it("a 429 heard meanwhile holds this process at once, and the others when it is back", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "5/s" }), fleet.add({ rate: "5/s" })];
    const permit = await fleet.now(one.acquire("x.org"));
    fleet.mood = "refusing";
    await fleet.now(fleet.demand(one, 1).catch(() => undefined)).catch(() => undefined);
    await fleet.clock.advance(2_000);
    const released = permit.release({ status: 429, headers: { "retry-after": "60" } });
    await fleet.clock.advance(100);
    await released;
    const count = fleet.starts.length;
    const work = fleet.demand(one, 1);
    await fleet.clock.advance(10_000);
    expect(fleet.starts).toHaveLength(count);
    fleet.mood = "well";
    await fleet.clock.advance(6_000);
    expect((await fleet.now(other.explain("x.org"))).causes[0]).toMatchObject({ limit: "cooldown" });
    await fleet.clock.advance(120_000);
    await work;
  });

  it("a lost reply is asked for again and counts once", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "3/h" });
    await fleet.demandNow(limiter, 1);
    fleet.mood = "replies lost";
    const work = fleet.demand(limiter, 1);
    await fleet.clock.advance(200);
    fleet.mood = "well";
    await fleet.clock.advance(5_000);
    await work;
    const stats = await fleet.now(limiter.stats("x.org"));
    expect(stats?.window).toMatchObject({ calls: 2, remaining: 1 });
  });

  it("an error that waiting does not mend reaches the caller, whatever the policy says", async () => {
    const fleet = new Fleet();
    const store = {
      ...fleet.store,
      transact: () => Promise.reject(new StoreError("the table is missing", { isLasting: true })),
    };
    for (const outage of ["share", "closed", "open"] as const) {
      const limiter = fleet.add({ rate: "1/s" }, { outage, store });
      await expect(fleet.now(limiter.acquire("x.org"))).rejects.toThrow("the table is missing");
    }
  });

  it.each(["share", "closed", "open"] as const)(
    "%s: an error that waiting does not mend reaches the caller also when the store was away before",
    async (outage) => {
      const fleet = new Fleet();
      let isMissing = false;
      const missing = new StoreError("the table is missing", { isLasting: true });
      const store: Store = {
        ...fleet.store,
        transact: (keys, operation) => (isMissing ? Promise.reject(missing) : fleet.store.transact(keys, operation)),
      };
      const limiter = fleet.add({ rate: "100/s" }, { outage, store });
      const held = await fleet.now(limiter.acquire("x.org"));
      fleet.mood = "refusing";
      const asked = limiter.acquire("x.org").catch((error: unknown) => error);
      await fleet.clock.advance(8_000);
      await asked;
      isMissing = true;
      await fleet.clock.advance(5_000);
      await expect(fleet.now(limiter.acquire("x.org"))).rejects.toMatchObject({
        isLasting: true,
        message: missing.message,
      });
      await expect(fleet.now(limiter.check("x.org"))).rejects.toThrow("the table is missing");
      void held.release({ kind: "rate_limited", retryAfterMs: 60_000 });
      await fleet.clock.advance(1_000);
      // It is mended, and what was heard meanwhile is told.
      isMissing = false;
      fleet.mood = "well";
      await fleet.clock.advance(5_000);
      const { proceed, waitMs } = await fleet.now(limiter.check("x.org"));
      expect(proceed).toBe(false);
      expect(waitMs).toBeGreaterThan(40_000);
    },
  );
});
