import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { memoryStore } from "../../src/stores/memory.js";
import { clientErrors } from "../../src/stores/redis/client.js";
import { redisStore } from "../../src/stores/redis.js";
import { sqliteStore } from "../../src/stores/sqlite.js";
import type { Store } from "../../src/stores/store.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import { Fleet } from "./fleet.js";

const nothing = { kind: "record", keys: [], agesUs: [], counts: [], meant: 0, random: 0, isAgain: false } as const;

describe("stores on one Redis client", () => {
  it("listen to it once, however many they are, and hear the same", () => {
    // Nobody listens on port 1.
    const client = new Redis({ lazyConnect: true, port: 1 });
    client.on("error", () => undefined);
    for (let count = 0; count < 30; count++) {
      const asked = redisStore(client).transact(["x"], { ...nothing, asker: "p.1", number: 1 });
      asked.catch(() => undefined);
    }
    expect([client.listenerCount("error"), client.listenerCount("ready")]).toEqual([2, 1]);
    const stores = [redisStore(client), redisStore(client)];
    const error = new Error("connect ECONNREFUSED");
    client.emit("error", error);
    expect(stores.map((store) => store.lastError?.())).toEqual([error, error]);
    client.emit("ready");
    expect(stores.map((store) => store.lastError?.())).toEqual([undefined, undefined]);
    client.disconnect();
  });

  it("on another client hear nothing of it", () => {
    const [one, other] = [new Redis({ lazyConnect: true }), new Redis({ lazyConnect: true })];
    for (const client of [one, other]) {
      client.on("error", () => undefined);
      clientErrors(client).listen();
    }
    one.emit("error", new Error("connect ECONNREFUSED"));
    expect(clientErrors(one).last()).toBeInstanceOf(Error);
    expect(clientErrors(other).last()).toBe(undefined);
  });
});

describe("a pause of a host without limits", () => {
  it("holds it as it does without a store, and says so once", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    const events: string[] = [];
    limiter.subscribe(({ type }) => events.push(type));
    await fleet.now(limiter.pause("localhost"));
    let isGranted = false;
    const asked = limiter.acquire("localhost").then(() => {
      isGranted = true;
    });
    await fleet.clock.advance(1_000);
    expect(isGranted).toBe(false);
    expect(await fleet.now(limiter.tryAcquire("localhost"))).toBe(undefined);
    expect(await fleet.now(limiter.check("localhost"))).toMatchObject({ proceed: false });
    expect(events.filter((type) => type === "pause")).toHaveLength(1);
    await fleet.now(limiter.resume("localhost"));
    await fleet.clock.advance(10);
    await asked;
    expect(isGranted).toBe(true);
    expect(fleet.calls).toBe(0);
  });

  it("is over after its time, and with a resume of everything", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    const begunMs = fleet.clock.now();
    await fleet.now(limiter.pause("localhost", "5s"));
    const asked = limiter.acquire("localhost");
    await fleet.clock.advance(6_000);
    expect((await asked).startedAtMs - begunMs).toBe(5_000);
    await fleet.now(limiter.pause("localhost"));
    await fleet.now(limiter.resume());
    expect(await fleet.now(limiter.tryAcquire("localhost"))).toBeDefined();
  });

  it("refuses a wrong length of time", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    await expect(fleet.now(limiter.pause("localhost", "soon" as never))).rejects.toThrow("duration");
  });
});

/** A store in memory whose clock can be set. */
function settable(clock: VirtualClock): { readonly store: Store; aheadMs: number } {
  const time = { aheadMs: 0 };
  // It begins at a day, so that it can be set back.
  const store = memoryStore(() => Math.floor((clock.now() + time.aheadMs + 86_400_000) * 1_000));
  return Object.assign(time, { store });
}

describe("a store whose clock is set back", () => {
  it.each([500, 5_000, 60_000, 3_600_000])(
    "by %d ms makes nobody wait for the old time, and forgives nothing",
    async (ms) => {
      const fleet = new Fleet();
      const place = settable(fleet.clock);
      const [one, other] = [0, 1].map(() => fleet.add({ rate: "1/10s" }, { store: place.store }));
      // By the clock of the processes: what permits say is by the store's.
      const startsMs: number[] = [];
      const start = async (limiter: SharedLimiter): Promise<void> => {
        const permit = await limiter.acquire("x.org");
        startsMs.push(fleet.clock.now());
        await permit.release("success");
      };
      await fleet.now(start(one));
      await fleet.clock.advance(2_000);
      place.aheadMs = -ms;
      const work = [start(one), start(other)];
      await fleet.clock.advance(60_000);
      await Promise.all(work);
      const [first, second, third] = startsMs;
      expect(second - first).toBeGreaterThanOrEqual(10_000);
      expect(third - second).toBeGreaterThanOrEqual(10_000);
      // The two seconds in which nobody asked do not count, nor does the one for which the clock may stand still.
      expect(third - first).toBeLessThanOrEqual(23_100);
    },
  );

  it("keeps a lease whose holder died for one more ttl at most, from when somebody asks", async () => {
    const clock = new VirtualClock();
    const place = settable(clock);
    const ask = (holder: string) =>
      place.store.transact(["nightly"], { kind: "lease", act: "take", holder, label: holder, ttlUs: 30e6, epochUs: 1 });
    expect((await ask("first")).isHeld).toBe(true);
    await clock.advance(20_000);
    place.aheadMs = -3_600_000;
    expect(await ask("second")).toMatchObject({ isHeld: false, remainingUs: 30e6 });
    await clock.advance(29_999);
    expect((await ask("second")).isHeld).toBe(false);
    await clock.advance(1);
    expect((await ask("second")).isHeld).toBe(true);
  });
});

describe("a platform without node:sqlite", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("cannot open a path, and waiting does not mend it", () => {
    vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined);
    let error: unknown;
    try {
      sqliteStore("limits.db");
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ isLasting: true });
  });
});

it.each(["share", "open", "closed"] as const)(
  "pause, resume and reset of a host reject while the store is away, and hold nothing: %s",
  async (outage) => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" }, { outage });
    await fleet.demandNow(limiter, 1);
    fleet.mood = "refusing";
    for (const work of [() => limiter.pause("x.org"), () => limiter.resume("x.org"), () => limiter.reset("x.org")]) {
      await expect(fleet.now(work())).rejects.toMatchObject({ code: "POLITELY_STORE", isLasting: false });
    }
    fleet.mood = "well";
    await fleet.clock.advance(10_000);
    await fleet.demandNow(limiter, 1);
    expect(fleet.starts).toHaveLength(2);
  },
);
