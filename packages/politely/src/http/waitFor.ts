import type { Clock } from "../types.js";

/** When to stop waiting. */
export interface Patience {
  readonly signal: AbortSignal | undefined;
  /** Infinity: no bound. */
  readonly maxWaitMs: number;
  /** What to fail with when the time is up. */
  readonly late: () => Error;
}

/** Waits for something that others may wait for too: giving up ends this wait only. Leaves no timer and no listener behind. */
export function waitFor<Value>(promise: Promise<Value>, clock: Clock, patience: Patience): Promise<Value> {
  const { signal, maxWaitMs, late } = patience;
  if (signal === undefined && maxWaitMs === Number.POSITIVE_INFINITY) return promise;
  return new Promise((resolve, reject) => {
    let timer: unknown;
    const stop = (): void => {
      clock.clearTimer(timer);
      signal?.removeEventListener("abort", abort);
    };
    const abort = (): void => {
      stop();
      reject(signal?.reason);
    };
    promise.then(resolve, reject).finally(stop);
    if (signal?.aborted === true) {
      abort();
      return;
    }
    signal?.addEventListener("abort", abort, { once: true });
    if (maxWaitMs === Number.POSITIVE_INFINITY) return;
    timer = clock.setTimer(clock.now() + maxWaitMs, () => {
      stop();
      reject(late());
    });
  });
}
