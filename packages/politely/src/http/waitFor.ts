import type { Clock } from "../types.js";
import { onAbort } from "./onAbort.js";

/** What ends a wait before its time. */
export interface Interruptions {
  /** Whoever waits gives up. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when there is reason to look again. */
  readonly woken: AbortSignal;
}

/** When to stop waiting. */
export interface WaitBounds extends Interruptions {
  /** Infinity: no bound. */
  readonly maxWaitMs: number;
  /** What to fail with when the time is up; undefined when that is no failure. */
  readonly late: (() => Error) | undefined;
}

/**
 * Waits for something that others may wait for too: giving up ends this wait only. Undefined when `woken` aborts first, or the
 * time is up and nothing is late. Rejects with the signal's reason when that aborts first.
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
      const atMs = clock.now() + maxWaitMs;
      const ring = (): void => {
        // Timers may be early; waking up too soon is waiting again.
        if (clock.now() < atMs) timer = clock.setTimer(atMs, ring);
        else if (late === undefined) wake();
        else {
          stop();
          reject(late());
        }
      };
      timer = clock.setTimer(atMs, ring);
    }
  });
}
