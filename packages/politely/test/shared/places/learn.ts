import type { SharedLimiter } from "../../../src/sharedTypes.js";
import type { Fleet } from "../fleet.js";

/** Lets a key learn that places are held for so long. */
export async function learn(fleet: Fleet, limiter: SharedLimiter, holdMs: number, key = "x.org"): Promise<void> {
  for (let times = 0; times < 16; times++) {
    const permit = await fleet.now(limiter.acquire(key));
    await fleet.clock.advance(holdMs);
    await fleet.now(permit.release("success"));
  }
  await fleet.clock.advance(1_000);
}

/** Resolves after so much virtual time. */
export function pass(fleet: Fleet, ms: number): Promise<void> {
  return new Promise<void>((resolve) => {
    fleet.clock.setTimer(fleet.clock.now() + ms, () => resolve());
  });
}
