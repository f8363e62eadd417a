import { expect, it } from "vitest";
import type { Store } from "../../../src/stores/store.js";
import { Fleet } from "../fleet.js";
import { learn } from "./learn.js";

it("gives the next place to a task that runs without one, before anybody who comes then", async () => {
  const fleet = new Fleet();
  const limits = { concurrency: 1, permitTtl: "30s" } as const;
  let isCut = false;
  const own: Store = {
    ...fleet.store,
    transact: (keys, operation) => (isCut ? new Promise(() => undefined) : fleet.store.transact(keys, operation)),
  };
  const a = fleet.add(limits, { store: own });
  const [b, c] = [fleet.add(limits), fleet.add(limits)];
  const pass = (ms: number) => fleet.clock.advance(ms);
  // The key learns that places are held for 60 s.
  await learn(fleet, b, 60_000);
  // A task of the first process is cut off for longer than permitTtl, and the second takes its place.
  const running = await fleet.now(a.acquire("x.org"));
  isCut = true;
  const second = b.acquire("x.org");
  await pass(60_000);
  const other = await second;
  isCut = false;
  await pass(10_000);
  // Now two run where one may. The second ends; somebody else comes 0.1 s later.
  await fleet.now(other.release("success"));
  const third = await fleet.now(c.tryAcquire("x.org"));
  const late = c.acquire("x.org").then(() => "started");
  const said = await Promise.race([late, pass(5_000).then(() => "waits")]);
  expect(third === undefined).toBe(true);
  expect(said).toBe("waits");
  await fleet.now(running.release());
});
