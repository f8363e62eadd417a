import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Store } from "../../src/stores/store.js";
import { Fleet } from "./fleet.js";

function outages(limiter: SharedLimiter): string[] {
  const messages: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "outage") messages.push(event.message);
  });
  return messages;
}

const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { code: "ECONNREFUSED" });

/** A store whose client keeps what it is asked for while it tries to connect, as Redis clients do. */
function silent(fleet: Fleet): Store {
  return { ...fleet.store, name: "Redis", lastError: () => refused, transact: () => new Promise(() => undefined) };
}

describe("the message of an outage", () => {
  it.each([
    ["closed", "every request is refused with a StoreError until it is back"],
    ["open", "every request passes until it is back, but to a host that this process heard say stop"],
    ["share", "this process keeps 1/10 of each limit until it is back, since it never heard how many share them"],
  ] as const)("%s: has the client's last error and what happens now", async (outage, words) => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "100/s" }, { outage, store: silent(fleet) });
    const messages = outages(limiter);
    const asked = limiter.acquire("x.org").then(
      () => undefined,
      (error: unknown) => error,
    );
    await fleet.clock.advance(8_000);
    expect(messages[0]).toContain("Redis is away: ");
    expect(messages[0]).toContain("connect ECONNREFUSED 127.0.0.1:6379");
    expect(messages[0]).toContain(words);
    const error = await asked;
    if (outage === "closed") {
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ cause: refused, isLasting: false });
      expect((error as StoreError).message).toContain("ECONNREFUSED");
    } else expect(error).toBeUndefined();
    await fleet.now(limiter.close());
  });

  it("share: says which part, by the processes last seen", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3].map(() => fleet.add({ window: "30/s" }));
    for (const limiter of [...limiters, limiters[0]]) await fleet.demandNow(limiter, 1);
    await fleet.clock.advance(1_000);
    await fleet.demandNow(limiters[0], 1);
    const messages = outages(limiters[0]);
    fleet.mood = "refusing";
    await fleet.demandNow(limiters[0], 1);
    expect(messages[0]).toContain("virtual: connection refused");
    expect(messages[0]).toContain("this process keeps 1/3 of each limit until it is back, by the processes last seen");
  });

  it("keeps the error that said something when a later try is only silent", async () => {
    const fleet = new Fleet();
    let tries = 0;
    const store: Store = {
      ...fleet.store,
      transact: () => {
        tries += 1;
        return tries === 1 ? Promise.reject(refused) : new Promise(() => undefined);
      },
    };
    const limiter = fleet.add({ rate: "1/s" }, { outage: "closed", store });
    const asked = limiter.acquire("x.org").catch((error: unknown) => error);
    await fleet.clock.advance(8_000);
    expect(await asked).toMatchObject({ cause: refused });
    expect(((await asked) as Error).message).toContain("ECONNREFUSED");
  });
});

describe("explain and stats while the store is away", () => {
  it("share: tell the part of this process, and that it is one", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "20/min" });
    fleet.mood = "refusing";
    await fleet.now(fleet.demand(limiter, 2));
    const { causes, proceed } = await fleet.now(limiter.explain("x.org"));
    expect(proceed).toBe(false);
    expect(causes[0]).toMatchObject({ limit: "window", key: "x.org" });
    expect(causes[0].message).toContain("window 20/min (1/10 of it, this process's part while virtual is away), ");
    expect((await fleet.now(limiter.stats("x.org")))?.window).toMatchObject({ calls: 2, remaining: 0 });
  });
});
