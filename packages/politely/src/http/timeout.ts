import { durationUs } from "../policy/duration.js";
import type { Clock, Duration } from "../types.js";
import { onAbort } from "./onAbort.js";

/** A signal that aborts after a time, or with another signal. */
export interface Timeout {
  readonly signal: AbortSignal;
  /** Ends it without aborting; leaves no timer and no listener behind. */
  stop(): void;
}

/** Reads the `timeout` of a request in milliseconds; undefined when there is none. Throws when it makes no sense. */
export function timeoutMsOf(timeout: Duration | undefined): number | undefined {
  return timeout === undefined ? undefined : durationUs(timeout, "timeout") / 1000;
}

/** Starts a timeout of `ms` on the clock. It aborts with a `TimeoutError`, as `AbortSignal.timeout` does. */
export function startTimeout(clock: Clock, ms: number, outer: AbortSignal | undefined): Timeout {
  const controller = new AbortController();
  let unfollow = (): void => undefined;
  const follow = (): void => end(outer?.reason);
  const timer = clock.setTimer(clock.now() + ms, () => {
    end(new DOMException(`No answer within ${ms} ms of the start.`, "TimeoutError"));
  });
  const stop = (): void => {
    clock.clearTimer(timer);
    unfollow();
  };
  const end = (reason: unknown): void => {
    stop();
    controller.abort(reason);
  };
  if (outer?.aborted === true) follow();
  else if (outer !== undefined) unfollow = onAbort(outer, follow);
  return { signal: controller.signal, stop };
}
