import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";
import { pass } from "./learn.js";

/** Each of the fleet holds the one place again and again, for `holdMs` give or take a part of it, until the time is over. */
async function crowd(
  processes: number,
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
    const limiter = fleet.add({ concurrency: 1 });
    void (async () => {
      while (!isOver) {
        const permit = await limiter.acquire("x.org");
        const heldMs = holdMs * (1 - spread + 2 * spread * random());
        starts += 1;
        busyMs += heldMs;
        await pass(fleet, heldMs);
        await permit.release();
      }
    })();
  }
  // First everybody learns how long a place is held.
  await fleet.clock.advance(12 * holdMs);
  [starts, busyMs, fleet.calls] = [0, 0, 0];
  const spanMs = Math.max(60_000, 10 * holdMs);
  await fleet.clock.advance(spanMs);
  isOver = true;
  return { callsPerStart: fleet.calls / starts, used: busyMs / spanMs };
}

// The numbers of docs/shared.md, "Turns", with some room.
it.each([
  [50, 500, 0, 4.5, 0.92],
  [50, 500, 0.2, 6, 0.86],
  [50, 30_000, 0.2, 45, 0.95],
  [10, 30_000, 0, 45, 0.95],
])(
  "%i processes at one place that is held for %i ms, give or take %f of it, call %f times a start at most and use %f of it at least",
  async (processes, holdMs, spread, callsMost, usedLeast) => {
    const { callsPerStart, used } = await crowd(processes, holdMs, spread);
    expect(callsPerStart).toBeLessThanOrEqual(callsMost);
    expect(used).toBeGreaterThanOrEqual(usedLeast);
  },
);
