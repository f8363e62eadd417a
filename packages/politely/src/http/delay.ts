import type { Clock } from "../types.js";
import { type Interruptions, waitFor } from "./waitFor.js";

/**
 * Resolves after `ms` of the clock, or as soon as `woken` aborts; rejects with the signal's reason when that aborts first.
 *
 * Leaves no timer and no listener behind.
 */
export async function delay(clock: Clock, ms: number, interruptions: Interruptions): Promise<void> {
  const nothing = new Promise<never>(() => undefined);
  await waitFor(nothing, clock, { ...interruptions, maxWaitMs: ms, late: undefined });
}
