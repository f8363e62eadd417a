import type { Clock } from "../types.js";
import { onAbort } from "./onAbort.js";

/** What ends a wait before its time. */
export interface Interruptions {
  /** Whoever waits gives up. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when there is reason to look again. */
  readonly woken: AbortSignal;
}

/**
 * Resolves after `ms` of the clock, or as soon as `woken` aborts; rejects with the signal's reason when that aborts first.
 *
 * Leaves no timer and no listener behind.
 */
export function delay(clock: Clock, ms: number, { signal, woken }: Interruptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    if (woken.aborted) {
      resolve();
      return;
    }
    const atMs = clock.now() + ms;
    const stop = (): void => {
      clock.clearTimer(timer);
      unwatch?.();
      sleepOn();
    };
    const end = (): void => {
      stop();
      resolve();
    };
    const ring = (): void => {
      // Timers may be early; waking up too soon is waiting again.
      if (clock.now() < atMs) timer = clock.setTimer(atMs, ring);
      else end();
    };
    const giveUp = (): void => {
      stop();
      reject(signal?.reason);
    };
    let timer = clock.setTimer(atMs, ring);
    const unwatch = signal === undefined ? undefined : onAbort(signal, giveUp);
    const sleepOn = onAbort(woken, end);
  });
}
