import { setTimeout as delay } from "node:timers/promises";

const pollMs = 5;

/**
 * Asks `isSo` again and again, 5 ms apart, and resolves once it says true.
 *
 * Rejects after `withinMs` with `what` in the message, and the last error if `isSo` rejected: a server that is not there yet may.
 */
export async function until(what: string, withinMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let cause: unknown;
  while (performance.now() < deadlineMs) {
    try {
      if (await isSo()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await delay(pollMs);
  }
  throw new Error(`Not within ${withinMs} ms: ${what}.`, { cause });
}
