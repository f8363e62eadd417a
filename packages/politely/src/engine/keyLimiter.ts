import type { Limits } from "../policy/types.js";
import type { KeyLimiter } from "../types.js";
import type { LocalLimiter } from "./limiter.js";

/** The verbs of a limiter with one key: those of `limiter`, always about `key`. */
export function localKeyLimiter(limiter: LocalLimiter, key: string, configure: (limits: Limits) => void): KeyLimiter {
  return {
    acquire: (options) => limiter.acquire(key, options),
    tryAcquire: (options) => limiter.tryAcquire(key, options),
    check: () => limiter.check(key),
    record: (outcome, options) => limiter.record(key, outcome, options),
    run: (task, options) => limiter.run(key, task, options),
    wrap: (fn) => limiter.wrap(key, fn),
    fetch: (input, init) => limiter.fetch(input, init),
    stats: () => limiter.statsNow(key),
    explain: () => limiter.explain(key),
    elapsedMs: () => limiter.elapsedMs(key),
    isEnabled: () => limiter.isEnabled(key),
    pause: (duration) => limiter.pause(key, duration),
    resume: () => limiter.resume(key),
    cancelWaiting: (reason) => limiter.cancelWaiting(key, reason),
    idle: () => limiter.idle(key),
    configure,
    reset: (what) => limiter.reset(key, what),
    subscribe: (listener) => limiter.subscribe(listener),
    close: (options) => limiter.close(options),
  };
}
