import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import { limit } from "../../src/politely.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { Fleet } from "./fleet.js";

const stop = { status: 429, headers: { "retry-after": "600" } } as const;

async function untilAway(fleet: Fleet, limiter: SharedLimiter): Promise<void> {
  fleet.mood = "refusing";
  const work = fleet.demand(limiter, 1, { key: "away.org" });
  await fleet.clock.advance(8_000);
  await work;
}

describe("a store that comes back", () => {
  it("counts as back although a busy process goes on starting", async () => {
    const fleet = new Fleet({ roundTripMs: 4 });
    const limiter = fleet.add({ window: "10/s" }, { outage: "open" });
    const messages: string[] = [];
    limiter.subscribe((event) => {
      if (event.type === "outage") messages.push(event.message);
    });
    await untilAway(fleet, limiter);
    let isOver = false;
    const one = async (): Promise<void> => {
      while (!isOver) {
        const permit = await limiter.acquire("x.org");
        await permit.release("success");
        await new Promise((resolve) => fleet.clock.setTimer(fleet.clock.now() + 1, () => resolve(undefined)));
      }
    };
    const work = one();
    await fleet.clock.advance(2_000);
    fleet.mood = "well";
    await fleet.clock.advance(8_000);
    isOver = true;
    await fleet.clock.advance(5_000);
    await work;
    expect(messages.some((message) => message.includes("is back"))).toBe(true);
  });

  it.each(["share", "open"] as const)(
    "hears of a 429 that was answered to a start of the outage: %s",
    async (outage) => {
      const fleet = new Fleet();
      const [one, other] = [fleet.add({ rate: "10/s" }, { outage }), fleet.add({ rate: "10/s" }, { outage })];
      await untilAway(fleet, one);
      const asked = one.acquire("x.org");
      await fleet.clock.advance(3_000);
      await (await asked).release(stop);
      await fleet.clock.advance(100);
      const next = one.acquire("x.org", { maxWait: "1s" }).catch((error: unknown) => error);
      await fleet.clock.advance(2_000);
      expect(await next).toMatchObject({ code: "POLITELY_DEADLINE" });
      fleet.mood = "well";
      await fleet.clock.advance(10_000);
      expect((await fleet.now(other.explain("x.org"))).causes[0]).toMatchObject({ limit: "cooldown" });
    },
  );

  it("hears of what was recorded meanwhile", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    await untilAway(fleet, one);
    const recorded = one.record("x.org", stop);
    await fleet.clock.advance(100);
    await recorded;
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    expect((await fleet.now(other.explain("x.org"))).causes[0]).toMatchObject({ limit: "cooldown" });
  });

  it("counts the starts of the outage with their own cost", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "100/min" }, { outage: "open" });
    await untilAway(fleet, limiter);
    for (const cost of [1, 90]) {
      const asked = limiter.acquire("x.org", { cost });
      await fleet.clock.advance(100);
      await (await asked).release();
    }
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    const stats = await fleet.now(limiter.stats("x.org", { fleet: true }));
    expect(stats?.window).toMatchObject({ calls: 91 });
  });

  it("wakes those who were told to wait by what stood in for it", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/min" });
    await fleet.demandNow(limiter, 1);
    fleet.mood = "refusing";
    const work = fleet.demand(limiter, 1);
    await fleet.clock.advance(4_000);
    fleet.mood = "well";
    await fleet.clock.advance(62_000);
    await work;
    expect(fleet.starts).toHaveLength(2);
  });
});

describe("while the store is away", () => {
  it("what one lane took of a shared scope is not there for another", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ default: { rate: "1000/s", burst: 1000 }, global: { window: "10/h" } });
    await fleet.now(fleet.demand(limiter, 10, { key: "a.org" }));
    fleet.mood = "refusing";
    const work = Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => limiter.acquire(`b${index}.org`, { maxWait: "20s" })),
    );
    await fleet.clock.advance(30_000);
    const granted = (await work).filter(({ status }) => status === "fulfilled");
    expect(granted.length).toBeLessThanOrEqual(1);
  });

  it.each(["check", "explain", "elapsedMs"] as const)("%s answers with what this process knows", async (verb) => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    await untilAway(fleet, limiter);
    await expect(fleet.now<unknown>(limiter[verb]("x.org"))).resolves.toBeDefined();
  });
});

describe("a change of policy while the store is asked", () => {
  it("gives back by the old policy what that had granted", async () => {
    const fleet = new Fleet({ roundTripMs: 20 });
    const [one, other] = [
      fleet.add({ rate: "100/s" }),
      fleet.add({ default: { rate: "100/s" }, global: { concurrency: 1 } }),
    ];
    const asked = one.acquire("x.org");
    await fleet.clock.advance(5);
    await one.configure({ default: { rate: "100/s" }, global: { concurrency: 1 } });
    await fleet.clock.advance(200);
    await fleet.now((await asked).release("unused"));
    await fleet.clock.advance(200);
    expect(await fleet.now(other.tryAcquire("y.org"))).toBeDefined();
  });
});

describe("closing", () => {
  it("keeps the places of permits that are still in flight", async () => {
    const fleet = new Fleet();
    const policy = { concurrency: 1, permitTtl: "3s" } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    await fleet.now(one.acquire("x.org"));
    await fleet.now(one.close({ drain: true }));
    await fleet.clock.advance(20_000);
    expect(await fleet.now(other.tryAcquire("x.org"))).toBeUndefined();
  });

  it("waits for releases under way", async () => {
    const fleet = new Fleet({ roundTripMs: 100 });
    const policy = { concurrency: 1 } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    const permit = await fleet.now(one.acquire("x.org"));
    permit[Symbol.dispose]();
    await fleet.now(one.close());
    expect(await fleet.now(other.tryAcquire("x.org"))).toBeDefined();
  });
});

describe("a pause of a host", () => {
  it("made by one process can be ended by another", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    await fleet.now(one.pause("x.org"));
    await fleet.now(other.resume("x.org"));
    await fleet.now(fleet.demand(one, 1));
    expect(fleet.starts).toHaveLength(1);
  });
});

describe("a permit held for maxHold", () => {
  it("is in flight no longer, and its late answer is still heard", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ concurrency: 1, maxHold: "10s", permitTtl: "3s" });
    const permit = await fleet.now(limiter.acquire("x.org"));
    await fleet.clock.advance(15_000);
    expect(await fleet.now(limiter.stats("x.org"))).toMatchObject({ inFlight: 0 });
    await fleet.now(limiter.idle());
    await fleet.now(permit.release(stop));
    expect((await fleet.now(limiter.explain("x.org"))).causes[0]).toMatchObject({ limit: "cooldown" });
  });
});

it("limit with a store needs a name, so that nobody shares by accident", () => {
  const fleet = new Fleet();
  expect(() => limit({ rate: "1/s" }, { store: fleet.store })).toThrow("needs a name");
});

it("leaves no timer when everybody was refused by an error that waiting does not mend", async () => {
  const fleet = new Fleet();
  const store = {
    ...fleet.store,
    transact: () => Promise.reject(new StoreError("the table is missing", { isLasting: true })),
  };
  const limiter = fleet.add({ rate: "1/s" }, { store });
  await expect(fleet.now(limiter.acquire("x.org"))).rejects.toThrow("the table is missing");
  expect(fleet.clock.pendingTimers).toBe(0);
});

it("a question that was given up takes no place, though the store gets it later", async () => {
  const fleet = new Fleet();
  const [one, other] = [fleet.add({ concurrency: 1 }, { outage: "closed" }), fleet.add({ concurrency: 1 })];
  fleet.mood = "replies lost";
  const refused = one.acquire("x.org").catch((error: unknown) => error);
  await fleet.clock.advance(8_000);
  expect(await refused).toMatchObject({ code: "POLITELY_STORE" });
  fleet.mood = "well";
  await fleet.clock.advance(6_000);
  expect(await fleet.now(other.tryAcquire("x.org"))).toBeDefined();
});

it("a store that is undefined is refused, so that nobody stops sharing by accident", () => {
  const fleet = new Fleet();
  expect(() => fleet.add({ rate: "1/s" }, { store: undefined as never })).toThrow("store is undefined");
});
