import { describe, expect, it } from "vitest";
import type { SharedLimiter, SharedPermit } from "../../src/sharedTypes.js";
import type { Store } from "../../src/stores/store.js";
import type { Clock } from "../../src/types.js";
import { Fleet } from "./fleet.js";

/** A process that can stand still: neither its timers nor the store's answers reach it meanwhile. */
class Sleeper {
  #isAsleep = false;
  readonly #missed: (() => void)[] = [];
  readonly clock: Clock;
  readonly store: Store;

  constructor(fleet: Fleet) {
    const { clock, store } = fleet;
    this.clock = {
      now: () => clock.now(),
      wall: () => clock.wall(),
      setTimer: (atMs, fn) => clock.setTimer(atMs, () => this.#hear(fn)),
      clearTimer: (timer) => clock.clearTimer(timer),
    };
    this.store = {
      ...store,
      transact: async (keys, operation) => {
        const reply = await store.transact(keys, operation);
        await new Promise<void>((resolve) => this.#hear(resolve));
        return reply;
      },
    };
  }

  sleep(): void {
    this.#isAsleep = true;
  }

  wake(): void {
    this.#isAsleep = false;
    for (const hear of this.#missed.splice(0)) hear();
  }

  #hear(fn: () => void): void {
    if (this.#isAsleep) this.#missed.push(fn);
    else fn();
  }
}

async function holding(limiter: SharedLimiter, held: Set<SharedPermit>): Promise<SharedPermit> {
  const permit = await limiter.acquire("x.org");
  held.add(permit);
  return permit;
}

describe("a process that stood still", () => {
  it("does not use a place that it was granted and that is somebody else's by now", async () => {
    const fleet = new Fleet();
    const sleeper = new Sleeper(fleet);
    const limits = { concurrency: 1, permitTtl: "2s" } as const;
    const one = fleet.add(limits, { clock: sleeper.clock, store: sleeper.store });
    const other = fleet.add(limits);
    const held = new Set<SharedPermit>();
    const first = holding(one, held);
    await fleet.clock.advance(0.6);
    sleeper.sleep();
    const second = holding(other, held);
    await fleet.clock.advance(6_000);
    expect(held.size).toBe(1);
    sleeper.wake();
    await fleet.clock.advance(1_000);
    expect(held.size).toBe(1);
    await fleet.now((await second).release());
    await fleet.clock.advance(1_000);
    expect(held.size).toBe(2);
    await fleet.now((await first).release());
  });

  it.each([200, 210, 220, 230, 240, 250])(
    "does not make up for starts that it was granted ahead and slept through from %i ms on",
    async (fromMs) => {
      const fleet = new Fleet({ roundTripMs: 19 });
      const sleeper = new Sleeper(fleet);
      const one = fleet.add({ rate: "100/s" }, { clock: sleeper.clock, store: sleeper.store });
      const atMs: number[] = [];
      const ask = async (): Promise<void> => {
        const permit = await one.acquire("x.org");
        atMs.push(fleet.clock.now());
        await permit.release();
      };
      const work = Promise.all(Array.from({ length: 60 }, ask));
      await fleet.clock.advance(fromMs);
      sleeper.sleep();
      await fleet.clock.advance(3_000);
      const before = atMs.length;
      sleeper.wake();
      await fleet.clock.advance(5);
      // One that was due while it slept may go at once, as any other; the rest is paced anew.
      expect(atMs.length - before).toBeLessThanOrEqual(1);
      await fleet.clock.advance(3_000);
      await work;
      const after = atMs.slice(before + 1);
      const gaps = after.slice(1).map((at, index) => at - after[index]);
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(9);
    },
  );
});

it("an answer that comes late goes back, also just after this process was suspended while it waited for one", async () => {
  const fleet = new Fleet();
  let sleptMs = 0;
  // Time passes for it all at once, and the answer is read before any timer is called.
  const clock: Clock = {
    now: () => fleet.clock.now() + sleptMs,
    wall: () => fleet.clock.wall() + sleptMs,
    setTimer: (atMs, fn) => fleet.clock.setTimer(atMs - sleptMs, fn),
    clearTimer: (timer) => fleet.clock.clearTimer(timer),
  };
  const limiter = fleet.add({ rate: "100/s", burst: 100 }, { clock });
  const first = limiter.acquire("x.org");
  await fleet.clock.settle();
  sleptMs = 20_000;
  await fleet.now(first);
  fleet.mood = "replies lost";
  let lateMs = -1;
  void limiter.acquire("x.org").then(({ startedAtMs }) => {
    lateMs = fleet.clock.now() - startedAtMs;
  });
  await fleet.clock.advance(1_000);
  fleet.mood = "well";
  await fleet.clock.advance(5_000);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThanOrEqual(50);
});
