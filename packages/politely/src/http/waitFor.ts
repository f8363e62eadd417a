import type { Clock } from "../types.js";
import type { Interruptions } from "./delay.js";
import { onAbort } from "./onAbort.js";

/** When to stop waiting. */
export interface WaitBounds extends Interruptions {
  /** Infinity: no bound. */
  readonly maxWaitMs: number;
  /** What to fail with when the time is up. */
  readonly late: () => Error;
}

/**
 * Waits for something that others may wait for too: giving up ends this wait only. Undefined when `woken` aborts first.
 *
 * Leaves no timer and no listener behind.
 */
export function waitFor<Value>(promise: Promise<Value>, clock: Clock, bounds: WaitBounds): Promise<Value | undefined> {
  const { signal, woken, maxWaitMs, late } = bounds;
  return new Promise((resolve, reject) => {
    let timer: unknown;
    let unwatch: (() => void) | undefined;
    let sleepOn: (() => void) | undefined;
    const stop = (): void => {
      clock.clearTimer(timer);
      unwatch?.();
      sleepOn?.();
    };
    const giveUp = (): void => {
      stop();
      reject(signal?.reason);
    };
    const wake = (): void => {
      stop();
      resolve(undefined);
    };
    promise.then(resolve, reject).finally(stop);
    if (signal?.aborted === true) giveUp();
    else if (woken.aborted) wake();
    else {
      unwatch = signal === undefined ? undefined : onAbort(signal, giveUp);
      sleepOn = onAbort(woken, wake);
      if (maxWaitMs === Number.POSITIVE_INFINITY) return;
      timer = clock.setTimer(clock.now() + maxWaitMs, () => {
        stop();
        reject(late());
      });
    }
  });
}
