import { expect, it } from "vitest";
import { memoryStore } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import { Fleet } from "./fleet.js";

it("a store that was emptied has forgotten quota, window and cooldown, and those in flight take their places again within a third of permitTtl", async () => {
  const fleet = new Fleet();
  const fresh = (): Store => memoryStore(() => Math.floor(fleet.clock.now() * 1000 + 0.01));
  let inner = fresh();
  const store: Store = {
    name: "virtual",
    timeline: "machine",
    transact: (keys, operation) => inner.transact(keys, operation),
  };
  const limiter = fleet.add(
    {
      hosts: {
        "quota.org": { quota: { count: 1, per: "day" } },
        "window.org": { window: "1/h" },
        "cool.org": { rate: "100/s" },
        "held.org": { concurrency: 1, permitTtl: "3s" },
      },
    },
    { store },
  );
  const events: string[] = [];
  limiter.subscribe(({ type, key }) => events.push(`${type} ${key}`));
  for (const key of ["quota.org", "window.org"]) await fleet.now(fleet.demand(limiter, 1, { key }));
  await fleet.now(limiter.record("cool.org", { status: 429, headers: { "retry-after": "600" } }));
  await fleet.now(limiter.acquire("held.org"));
  const hosts = ["quota.org", "window.org", "cool.org", "held.org"];
  const mayStart = async (): Promise<boolean[]> =>
    fleet.now(Promise.all(hosts.map(async (host) => (await limiter.check(host)).proceed)));
  expect(await mayStart()).toEqual([false, false, false, false]);
  inner = fresh();
  expect(await mayStart()).toEqual([true, true, true, true]);
  await fleet.clock.advance(1_100);
  expect(await mayStart()).toEqual([true, true, true, false]);
  expect(events.filter((event) => /^(expire|warn)/.test(event))).toEqual([]);
});
