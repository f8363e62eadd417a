import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import { ONE } from "../../src/scheduler/cost.js";
import { Link } from "../../src/scheduler/shared/link.js";
import type { Plan } from "../../src/scheduler/shared/plan.js";
import { Standby } from "../../src/scheduler/shared/standby.js";
import type { TakeKey } from "../../src/shared/operation.js";
import type { SharedLimiter, SharedOptions } from "../../src/sharedTypes.js";
import { memoryStore } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import { keyOf, settleOf, type TakenStart, takeOf } from "../../src/testing/store/operations.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import { Fleet } from "./fleet.js";

/** A process, and what it warned of. */
function watched(fleet: Fleet, limits: object, options: Partial<SharedOptions>): [SharedLimiter, string[]] {
  const limiter = fleet.add(limits, options);
  const warnings: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "warn") warnings.push(event.message);
  });
  return [limiter, warnings];
}

/** The store is away while something is done, and then back. */
async function whileAway(fleet: Fleet, limiter: SharedLimiter, act: () => Promise<unknown>): Promise<void> {
  fleet.mood = "refusing";
  limiter.check("x.org").catch(() => undefined);
  await fleet.clock.advance(5_000);
  await act();
  fleet.mood = "well";
  await fleet.clock.advance(60_000);
}

async function startsAt(fleet: Fleet, limiter: SharedLimiter, key: string): Promise<number> {
  return (await fleet.now(limiter.stats(key, { fleet: true })))?.totalRequests ?? 0;
}

async function times(count: number, act: (number: number) => Promise<void>): Promise<void> {
  for (let number = 0; number < count; number++) await act(number);
}

describe("what was started while the store was away is told to it", () => {
  it("though 10,500 bad answers came meanwhile, and the next time too", async () => {
    const fleet = new Fleet();
    const [limiter, warnings] = watched(fleet, { window: "100000/d", backoff: "none" }, { outage: "open" });
    await whileAway(fleet, limiter, () => times(10_500, () => limiter.record("x.org", { status: 503 })));
    expect(await startsAt(fleet, limiter, "x.org")).toBe(10_500);
    await whileAway(fleet, limiter, () => times(5, () => limiter.record("x.org", "success")));
    expect(await startsAt(fleet, limiter, "x.org")).toBe(10_505);
    expect(warnings).toEqual([]);
  });

  it("with the longest time to stay away that a host asked for, though it asked for less later", async () => {
    const fleet = new Fleet();
    const [limiter] = watched(fleet, { window: "100/d" }, { outage: "open" });
    await whileAway(fleet, limiter, async () => {
      for (const seconds of ["600", "3", "2"])
        await limiter.record("x.org", { status: 429, headers: { "retry-after": seconds } });
    });
    const { causes } = await fleet.now(fleet.add({ window: "100/d" }).explain("x.org"));
    expect(causes[0]).toMatchObject({ limit: "cooldown" });
    expect(causes[0]?.waitMs).toBeGreaterThan(500_000);
  });

  it("while it hangs and comes back in between", async () => {
    const fleet = new Fleet();
    const [limiter] = watched(fleet, { window: "100/d" }, { outage: "open" });
    await whileAway(fleet, limiter, async () => {
      for (const mood of ["replies lost", "refusing", "silent", "refusing"] as const) {
        await limiter.record("x.org", "success");
        fleet.mood = mood;
        await fleet.clock.advance(9_000);
      }
    });
    expect(await startsAt(fleet, limiter, "x.org")).toBe(4);
  });
});

/** A link over a store in memory that can be away, and what was said to be lost. */
function rig() {
  const clock = new VirtualClock();
  const inner = memoryStore(() => Math.floor(clock.now() * 1000));
  const place = { isAway: false };
  const transact: Store["transact"] = (keys, operation) =>
    place.isAway ? Promise.reject(new StoreError("refused")) : inner.transact(keys, operation);
  const lost: string[] = [];
  const onLost = (_: string, message: string): void => void lost.push(message);
  const store: Store = { ...inner, transact };
  const link = new Link({ store, clock, process: "p", onOutage: () => undefined, onLost });
  const own = memoryStore(() => Math.floor(clock.now() * 1000));
  const standby = new Standby(own, link, () => Math.floor(clock.now() * 1000), "open");
  return { clock, inner, place, lost, link, standby };
}

describe("10,500 hosts with a start and two bad answers each", () => {
  it("are all told, and nothing is said to be lost", async () => {
    const { clock, inner, place, lost, link, standby } = rig();
    const key = keyOf({ windows: [5, 86_400_000_000, 1] });
    place.isAway = true;
    const failed = link.meet().catch(() => undefined);
    await clock.advance(1_000);
    await failed;
    const hosts = Array.from({ length: 10_500 }, (_, number) => `host h${number}`);
    for (const host of hosts) {
      const plan = { storeKeys: [host], keys: [{ rule: {}, shared: key.rule, ruleId: key.ruleId }] } as unknown as Plan;
      const note = { plan, cost: ONE, keysNow: () => [key] };
      await standby.record(note, [key], { startedUs: clock.now() * 1000, isMissed: true });
      for (const retryAfterUs of [600_000_000, 5_000_000])
        link.keep([host], (by) =>
          settleOf(by, startAt(clock, key), { answer: { kind: "rate_limited", retryAfterUs } }),
        );
    }
    expect([standby.size, link.backlog.size]).toEqual([10_500, 21_000]);
    place.isAway = false;
    await clock.advance(10_000);
    expect([link.isAway, link.backlog.size, lost]).toEqual([false, 0, []]);
    const wrong: string[] = [];
    for (const host of hosts) {
      const [seen] = (await inner.transact([host], { kind: "look", keys: [key] })).keys;
      if (seen.starts !== 1 || seen.throttled !== 1 || seen.cooldownUs < 500_000_000) wrong.push(host);
    }
    expect(wrong).toEqual([]);
  });

  it("are more than are kept where they come back from the store, of which the answers stay", async () => {
    const { clock, inner, place, lost, link } = rig();
    const key = keyOf({ windows: [5, 86_400_000_000, 1] });
    const tell = (host: string, isBad: boolean) =>
      link.sendOrKeep([host], (by) =>
        settleOf(by, startAt(clock, key), isBad ? { answer: { kind: "rate_limited", retryAfterUs: 600_000_000 } } : {}),
      );
    place.isAway = true;
    const failed = link.meet().catch(() => undefined);
    await clock.advance(1_000);
    await failed;
    void tell("host bad", true);
    for (let number = 0; number < 10_500; number++) void tell(`host h${number}`, false);
    place.isAway = false;
    await clock.advance(10_000);
    expect(lost).toHaveLength(2);
    expect(lost[1]).toContain("501 operations");
    const { keys } = await inner.transact(["host bad"], { kind: "look", keys: [key] });
    expect(keys[0].cooldownUs).toBeGreaterThan(500_000_000);
  });
});

/** A start that somebody made, for its answer. */
function startAt(clock: VirtualClock, key: TakeKey): TakenStart {
  const operation = takeOf({ asker: "", sequence: 0 }, [key]);
  const start = { startedUs: clock.now() * 1000, token: 0, unitsAfter: [Number.MAX_SAFE_INTEGER], previousUs: [-1] };
  return { operation, start, place: "", grantedUs: 0 };
}
