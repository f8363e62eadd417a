import { expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import { Fleet } from "./fleet.js";

const DAILY = { quota: { count: 5, per: "day" }, rate: "1000/s", burst: 100 } as const satisfies Limits;
const SOON = { maxWait: "10s" } as const;

async function end(fleet: Fleet, work: Promise<unknown>): Promise<string> {
  return fleet.now(
    work.then(
      () => "ok",
      (error: { code: string }) => error.code,
    ),
  );
}

it.each(["this process", "another process"])("starts after a reset by %s of a quota that was spent", async (who) => {
  const fleet = new Fleet();
  const [one, other] = [fleet.add(DAILY), fleet.add(DAILY)];
  await fleet.demandNow(one, 5);
  expect(await end(fleet, one.acquire("x.org", SOON))).toBe("POLITELY_DEADLINE");
  await fleet.now((who === "this process" ? one : other).reset("x.org", "all"));
  await fleet.clock.advance(60_000);
  expect(await end(fleet, one.acquire("x.org", SOON))).toBe("ok");
  expect(
    await end(
      fleet,
      one.run("x.org", () => 1, SOON),
    ),
  ).toBe("ok");
});

it("starts after the quota was made larger", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add(DAILY);
  await fleet.demandNow(limiter, 5);
  expect(await end(fleet, limiter.acquire("x.org", SOON))).toBe("POLITELY_DEADLINE");
  await fleet.now(limiter.configure({ default: { ...DAILY, quota: { count: 1_000, per: "day" } } }));
  expect(await end(fleet, limiter.acquire("x.org", SOON))).toBe("ok");
});

it("starts after a reset of everything that ends a Retry-After of an hour, also while the store is away", async () => {
  const fleet = new Fleet();
  const limits = { rate: "10/s", burst: 10 } as const;
  const [one, other] = [fleet.add(limits), fleet.add(limits)];
  const permit = await fleet.now(one.acquire("x.org"));
  await fleet.now(permit.release({ kind: "rate_limited", retryAfterMs: 3_600_000 }));
  expect(await end(fleet, one.acquire("x.org", SOON))).toBe("POLITELY_DEADLINE");
  await fleet.now(other.reset("x.org", "all"));
  expect(await end(fleet, one.acquire("x.org", SOON))).toBe("ok");
  await fleet.now(one.reset("x.org", "all"));
  fleet.mood = "refusing";
  await fleet.clock.advance(100);
  expect(await end(fleet, one.acquire("x.org"))).toBe("ok");
});

it("starts what still fits into a quota after something larger was refused, and what was returned", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add(DAILY);
  await fleet.demandNow(limiter, 3);
  expect(await end(fleet, limiter.acquire("x.org", { ...SOON, cost: 3 }))).toBe("POLITELY_DEADLINE");
  expect(await end(fleet, limiter.acquire("x.org", SOON))).toBe("ok");
  const last = await fleet.now(limiter.acquire("x.org"));
  expect(await end(fleet, limiter.acquire("x.org", SOON))).toBe("POLITELY_DEADLINE");
  await fleet.now(last.release("unused"));
  expect(await end(fleet, limiter.acquire("x.org", SOON))).toBe("ok");
});

it("lets everybody who waits start at once after a reset by this process", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ minDelay: "1h" });
  await fleet.demandNow(limiter, 1);
  const work = fleet.demand(limiter, 1);
  await fleet.clock.advance(1_000);
  await fleet.now(limiter.reset("x.org"));
  await fleet.now(work);
});

it.each([
  { how: "when a heavier head has gone", isGone: true, options: {} },
  { how: "that has a higher priority than a heavier head", isGone: false, options: { priority: 10 } },
  {
    how: "that has a higher priority, and a deadline",
    isGone: false,
    options: { priority: 10, maxWait: "2s" } as const,
  },
])("starts somebody in a lane within a round trip $how", async ({ isGone, options }) => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/s", burst: 5 });
  await fleet.demandNow(limiter, 4);
  const stop = new AbortController();
  limiter.acquire("x.org", { cost: 5, signal: stop.signal }).catch(() => undefined);
  await fleet.clock.advance(20);
  const light = limiter.acquire("x.org", options);
  await fleet.clock.advance(20);
  const askedMs = fleet.clock.now();
  if (isGone) stop.abort();
  expect((await fleet.now(light)).startedAtMs).toBeLessThanOrEqual(askedMs + 1);
});
