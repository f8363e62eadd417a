import type { Clock } from "../types.js";

/** Resolves after `ms` of the clock; rejects with the signal's reason when it aborts first, leaving no timer behind. */
export function delay(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const atMs = clock.now() + ms;
    let timer: unknown;
    const abort = (): void => {
      clock.clearTimer(timer);
      reject(signal?.reason);
    };
    const wake = (): void => {
      // Timers may be early; waking up too soon is waiting again.
      if (clock.now() < atMs) {
        timer = clock.setTimer(atMs, wake);
        return;
      }
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    if (signal?.aborted === true) {
      abort();
      return;
    }
    signal?.addEventListener("abort", abort, { once: true });
    timer = clock.setTimer(atMs, wake);
  });
}
