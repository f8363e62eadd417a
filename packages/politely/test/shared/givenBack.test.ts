import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Store } from "../../src/stores/store.js";
import type { Clock } from "../../src/types.js";
import { Fleet, mostWithin } from "./fleet.js";

const second = 1_000_000;

/** A store that remembers for which instant of its timeline each start was granted, by its token. */
function watching(fleet: Fleet): { readonly store: Store; readonly grantedMs: Map<number, number> } {
  const grantedMs = new Map<number, number>();
  const transact: Store["transact"] = async (keys, operation) => {
    const reply = await fleet.store.transact(keys, operation);
    if ("grants" in reply) {
      for (const { token, count, startedUs } of reply.grants)
        for (let nth = 0; nth < count; nth++) grantedMs.set(token + nth, startedUs / 1000);
    }
    return reply;
  };
  return { store: { ...fleet.store, transact }, grantedMs };
}

/** Makes requests that are given up when the signal says so. */
function want(fleet: Fleet, limiter: SharedLimiter, count: number, signal: AbortSignal): Promise<unknown> {
  const one = async (): Promise<void> => {
    const permit = await limiter.acquire("x.org", { signal });
    fleet.note(limiter, permit);
    await permit.release();
  };
  return Promise.allSettled(Array.from({ length: count }, one));
}

describe("starts of several instants that are given back together", () => {
  it("take nobody else's start out of a window", async () => {
    const fleet = new Fleet({ roundTripMs: 0.2 });
    const [other, leaver, late] = [1, 2, 3].map(() => fleet.add({ window: "4/s" }));
    const first = fleet.demand(other, 1);
    await fleet.clock.advance(20);
    const three = fleet.demand(other, 3);
    await fleet.clock.advance(950);
    // Those of the leaver are granted ahead, for two instants; the late one has its start at the second of them.
    const leaving = new AbortController();
    const left = want(fleet, leaver, 3, leaving.signal);
    await fleet.clock.advance(5);
    const one = fleet.demand(late, 1);
    await fleet.clock.advance(5);
    leaving.abort();
    await fleet.clock.advance(100);
    const four = fleet.demand(other, 4);
    await fleet.clock.advance(3_000);
    await Promise.all([first, three, left, one, four]);
    expect(fleet.starts).toHaveLength(9);
    expect(mostWithin(fleet.startsUs(), second)).toBe(4);
  });

  it("all leave the window", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1000/s", burst: 1, window: "100/min" });
    await fleet.demandNow(limiter, 1);
    const leaving = new AbortController();
    const left = want(fleet, limiter, 40, leaving.signal);
    await fleet.clock.advance(5.2);
    leaving.abort();
    await fleet.clock.advance(500);
    await left;
    expect(fleet.starts.length).toBeGreaterThan(1);
    expect(fleet.starts.length).toBeLessThan(20);
    const stats = await fleet.now(limiter.stats("x.org", { fleet: true }));
    expect(stats?.window?.calls).toBe(fleet.starts.length);
    expect(stats?.totalRequests).toBe(fleet.starts.length);
  });
});

it("a start is not used more than 50 ms after its instant, however late those before it were", async () => {
  const fleet = new Fleet();
  const { store, grantedMs } = watching(fleet);
  const { clock } = fleet;
  // A process that is busy: whatever it waits for comes late.
  const busy: Clock = {
    now: () => clock.now(),
    wall: () => clock.wall(),
    setTimer: (atMs, fn) => clock.setTimer(atMs + 45, fn),
    clearTimer: (timer) => clock.clearTimer(timer),
  };
  const limiter = fleet.add({ rate: "200/s" }, { clock: busy, store });
  const lateMs: number[] = [];
  const one = async (): Promise<void> => {
    const permit = await limiter.acquire("x.org");
    lateMs.push(clock.now() - (grantedMs.get(permit.token ?? 0) ?? Number.NaN));
    await permit.release();
  };
  const work = Promise.all(Array.from({ length: 30 }, one));
  await clock.advance(10_000);
  await work;
  expect(lateMs).toHaveLength(30);
  // And the way of the answer.
  expect(Math.max(...lateMs)).toBeLessThanOrEqual(51);
  expect(Math.max(...lateMs)).toBeGreaterThan(25);
});

describe("a process that hears a 429", () => {
  it.each([false, true])("gives back what it has at hand once the store has heard it (batch: %s)", async (batch) => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1000/s", burst: 1, window: "120000/min" }, { batch });
    const told = await fleet.now(limiter.acquire("x.org"));
    const work = fleet.demand(limiter, 64);
    await fleet.clock.advance(4);
    const before = fleet.starts.length;
    const released = told.release({ status: 429, headers: { "retry-after": "5" } });
    const saidMs = fleet.clock.now();
    await fleet.clock.advance(4_000);
    await released;
    expect(before).toBeGreaterThan(0);
    expect(fleet.starts.every(({ atMs }) => atMs <= saidMs + fleet.roundTripMs + 0.5)).toBe(true);
    const { length } = fleet.starts;
    const stats = await fleet.now(limiter.stats("x.org", { fleet: true }));
    expect(stats?.totalRequests).toBe(length + 1);
    expect(stats?.window?.calls).toBe(length + 1);
    await fleet.clock.advance(10_000);
    await work;
    expect(fleet.starts).toHaveLength(64);
  });

  it("keeps what it has at hand for other hosts", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1000/s", burst: 1 });
    const told = await fleet.now(limiter.acquire("x.org"));
    const work = fleet.demand(limiter, 40, { key: "y.org" });
    await fleet.clock.advance(4);
    const { calls } = fleet;
    const released = told.release({ status: 429, headers: { "retry-after": "5" } });
    await fleet.clock.advance(60);
    await Promise.all([work, released]);
    expect(fleet.starts).toHaveLength(40);
    expect(fleet.calls).toBe(calls + 1);
  });
});

it.each([20, 45, 90])(
  "nobody starts 100 ms after a 429 was told, also where timers are %i ms late",
  async (timersLateMs) => {
    let worstMs = Number.NEGATIVE_INFINITY;
    for (let phase = 0; phase < 50; phase += 5) {
      const fleet = new Fleet();
      const { clock } = fleet;
      const late: Clock = {
        now: () => clock.now(),
        wall: () => clock.wall(),
        setTimer: (atMs, fn) => clock.setTimer(atMs + timersLateMs, fn),
        clearTimer: (timer) => clock.clearTimer(timer),
      };
      const [teller, other] = [fleet.add({ rate: "20/s" }), fleet.add({ rate: "20/s" }, { clock: late })];
      const startedMs: number[] = [];
      const work = async (): Promise<void> => {
        const permit = await other.acquire("x.org");
        startedMs.push(clock.now());
        await permit.release("success");
        return work();
      };
      work().catch(() => undefined);
      await clock.advance(2_000);
      const asked = teller.acquire("x.org");
      await clock.advance(200 + phase);
      let toldMs = Number.POSITIVE_INFINITY;
      void (await asked).release({ status: 429, headers: { "retry-after": "9" } }).then(() => {
        toldMs = clock.now();
      });
      const before = startedMs.length;
      await clock.advance(2_000);
      expect(before).toBeGreaterThan(10);
      worstMs = Math.max(worstMs, (startedMs.at(-1) ?? 0) - toldMs);
    }
    expect(worstMs).toBeLessThanOrEqual(100);
  },
);
