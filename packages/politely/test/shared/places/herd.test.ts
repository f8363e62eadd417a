import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";
import { pass } from "./learn.js";

/** Each of the fleet wants all places, holds what it gets for `holdMs` give or take a part of it, and wants it again, until the time is over. */
async function crowd(
  processes: number,
  places: number,
  holdMs: number,
  spread: number,
): Promise<{ readonly callsPerStart: number; readonly used: number }> {
  const fleet = new Fleet();
  let seed = 7;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  let [isOver, starts, busyMs] = [false, 0, 0];
  for (let process = 0; process < processes; process++) {
    const limiter = fleet.add({ concurrency: places });
    const task = async (): Promise<void> => {
      while (!isOver) {
        const permit = await limiter.acquire("x.org");
        const heldMs = holdMs * (1 - spread + 2 * spread * random());
        starts += 1;
        busyMs += heldMs;
        await pass(fleet, heldMs);
        await permit.release();
      }
    };
    for (let place = 0; place < places; place++) void task();
  }
  // First everybody learns how long a place is held.
  await fleet.clock.advance(12 * holdMs);
  [starts, busyMs, fleet.calls] = [0, 0, 0];
  const spanMs = Math.max(Math.min(60_000, 120 * holdMs), 10 * holdMs);
  await fleet.clock.advance(spanMs);
  isOver = true;
  return { callsPerStart: fleet.calls / starts, used: busyMs / spanMs / places };
}

// The numbers of docs/shared.md, "Turns", with some room.
it.each([
  [50, 1, 500, 0, 4.5, 0.92],
  [50, 1, 500, 0.2, 6, 0.86],
  [50, 1, 30_000, 0.2, 24, 0.95],
  [10, 1, 30_000, 0, 11, 0.95],
  [5, 4, 20, 0.5, 4, 0.8],
  [20, 8, 20, 0.5, 4, 0.75],
  [20, 8, 100, 0.2, 5, 0.88],
])(
  "%i processes at %i places that are held for %i ms, give or take %f of it, call %f times a start at most and use %f of them at least",
  async (processes, places, holdMs, spread, callsMost, usedLeast) => {
    const { callsPerStart, used } = await crowd(processes, places, holdMs, spread);
    expect(callsPerStart).toBeLessThanOrEqual(callsMost);
    expect(used).toBeGreaterThanOrEqual(usedLeast);
  },
);
