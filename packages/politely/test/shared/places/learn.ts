import type { SharedLimiter } from "../../../src/sharedTypes.js";
import type { Fleet } from "../fleet.js";

/** Lets a key learn that places are held for so long, from so many holds. */
export async function learn(
  fleet: Fleet,
  limiter: SharedLimiter,
  holdMs: number,
  { key = "x.org", holds = 16 } = {},
): Promise<void> {
  for (let times = 0; times < holds; times++) {
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

/** Uses one place for so long and says when it got it. */
export async function hold(fleet: Fleet, limiter: SharedLimiter, ms: number, signal?: AbortSignal): Promise<number> {
  const permit = await limiter.acquire("x.org", signal === undefined ? {} : { signal });
  const atMs = fleet.clock.now();
  await pass(fleet, ms);
  await permit.release("success");
  return atMs;
}
