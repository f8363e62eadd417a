import { StoreError } from "../../errors.js";
import type { Engine } from "../engine.js";
import type { Lane } from "../lane.js";

/** Tells everybody in a lane that the store cannot be asked, and that nothing was granted. */
export function refuseAll({ departures, queue }: Engine, lane: Lane | undefined, error: unknown): void {
  const code = error instanceof StoreError ? error.code : "POLITELY_STORE";
  const reason = error instanceof Error ? error.message : String(error);
  for (const waiter of lane?.everybody() ?? []) departures.refuseWaiter(waiter, error, code, 0, reason);
  // Nobody may be left to wait: the timer goes, too.
  queue.run();
}
