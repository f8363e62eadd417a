// @ts-check
import { RateLimiter } from "limiter";

/** Refills a thousand million a second: it never refuses in a benchmark. */
const NEVER_REFUSES = { tokensPerInterval: 1e9, interval: 1000 };

export function tryOne() {
  const limiter = new RateLimiter(NEVER_REFUSES);
  return () => limiter.tryRemoveTokens(1);
}

export function tryMany() {
  /** @type {Map<string, RateLimiter>} */
  const limiters = new Map();
  return (/** @type {string} */ host) => {
    let limiter = limiters.get(host);
    if (limiter === undefined) {
      limiter = new RateLimiter(NEVER_REFUSES);
      limiters.set(host, limiter);
    }
    return limiter.tryRemoveTokens(1);
  };
}

export function awaited() {
  const limiter = new RateLimiter(NEVER_REFUSES);
  return () => limiter.removeTokens(1);
}

/** @param {string[]} hosts */
export function hold(hosts) {
  const limiters = new Map();
  for (const host of hosts) {
    const limiter = new RateLimiter({ tokensPerInterval: 1, interval: "hour" });
    limiter.tryRemoveTokens(1);
    limiters.set(host, limiter);
  }
  return limiters;
}

/**
 * `burst` tokens that refill at `count` per `perMs`: the interval is the time the whole burst takes.
 *
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 */
export function paced({ count, perMs, burst }, onStart) {
  const limiter = new RateLimiter({ tokensPerInterval: burst, interval: (perMs * burst) / count });
  const started = () => onStart(performance.now());
  return () => {
    limiter.removeTokens(1).then(started);
  };
}
