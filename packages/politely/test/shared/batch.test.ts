import { describe, expect, it } from "vitest";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Clock } from "../../src/types.js";
import { Fleet, mostWithin } from "./fleet.js";

describe("with batch", () => {
  it("many starts of a fast key cost one question", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10000/s", burst: 100 }, { batch: true });
    const done = fleet.demand(limiter, 5_000);
    await fleet.clock.advance(2_000);
    await done;
    expect(fleet.starts).toHaveLength(5_000);
    expect(fleet.calls).toBeLessThan(5_000 / 20);
  });

  it("at most 10 ms of the rate are taken at a time, and the overshoot is at most 2 %", async () => {
    const fleet = new Fleet();
    const limiters = [1, 2, 3].map(() => fleet.add({ window: "1000/s" }, { batch: true }));
    // When it really started: the instant at which the caller went on.
    const wentMs: number[] = [];
    const one = async (limiter: (typeof limiters)[number]): Promise<void> => {
      const permit = await limiter.acquire("x.org");
      wentMs.push(fleet.clock.now());
      await permit.release("success");
    };
    const done = Promise.all(limiters.flatMap((limiter) => Array.from({ length: 1_000 }, () => one(limiter))));
    await fleet.clock.advance(6_000);
    await done;
    const wentUs = wentMs.map((ms) => Math.round(ms * 1000)).sort((a, b) => a - b);
    expect(mostWithin(fleet.startsUs(), 1_000_000)).toBeLessThanOrEqual(1_000);
    expect(mostWithin(wentUs, 1_000_000)).toBeLessThanOrEqual(1_020);
  });

  it.each([
    ["200/100ms", 200, 100],
    ["100/50ms", 100, 50],
    ["1000/s", 1_000, 1_000],
  ] as const)(
    "a start of %s is used within 1 %% of the period after its instant, though timers are up to 9 ms late",
    async (window, count, perMs) => {
      const fleet = new Fleet({ roundTripMs: 0.2 });
      const { clock } = fleet;
      let turn = 0;
      // Every other timer is late, by up to 9 ms.
      const late: Clock = {
        now: () => clock.now(),
        wall: () => clock.wall(),
        setTimer: (atMs, fn) => clock.setTimer(atMs + (++turn % 2 === 0 ? (turn * 7) % 10 : 0), fn),
        clearTimer: (timer) => clock.clearTimer(timer),
      };
      const startedUs: number[] = [];
      const lateUs: number[] = [];
      let isOver = false;
      const caller = async (limiter: SharedLimiter): Promise<void> => {
        while (!isOver) {
          const permit = await limiter.acquire("x.org");
          startedUs.push(Math.round(permit.startedAtMs * 1000));
          lateUs.push(Math.round((clock.now() - permit.startedAtMs) * 1000));
          await permit.release("success");
        }
      };
      for (let process = 0; process < 4; process++) {
        const limiter = fleet.add({ window }, { batch: true, clock: late });
        for (let number = 0; number < 8; number++) caller(limiter).catch(() => undefined);
      }
      await clock.advance(1_500);
      isOver = true;
      expect(startedUs.length).toBeGreaterThan((count * 1_500) / perMs / 2);
      expect(mostWithin(startedUs, perMs * 1_000)).toBeLessThanOrEqual(count);
      // And a round trip, there and back.
      expect(Math.max(...lateUs)).toBeLessThanOrEqual(perMs * 10 + 400);
    },
  );

  it("what was taken and not used goes back", async () => {
    const fleet = new Fleet();
    const policy = { rate: "1000/s", burst: 100 } as const;
    const [one, other] = [fleet.add(policy, { batch: true }), fleet.add(policy, { batch: true })];
    const done = fleet.demand(one, 60);
    await fleet.clock.advance(30);
    await done;
    await fleet.clock.advance(500);
    const stats = await fleet.now(other.stats("x.org", { fleet: true }));
    expect(stats?.tokens).toBe(100);
    expect(fleet.clock.pendingTimers).toBe(0);
  });
});
