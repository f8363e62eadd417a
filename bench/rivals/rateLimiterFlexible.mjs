// @ts-check
import flexible from "rate-limiter-flexible";

/** Each host has had its one start of this hour. No prefix, so that no key string is made anew. @param {string[]} hosts */
export async function hold(hosts) {
  const limiter = new flexible.RateLimiterMemory({ points: 1, duration: 3600, keyPrefix: "" });
  for (const host of hosts) await limiter.consume(host);
  return limiter;
}

/**
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 */
export function paced({ count, perMs, burst }, onStart) {
  const duration = (perMs * burst) / count / 1000;
  const queue = new flexible.RateLimiterQueue(new flexible.RateLimiterMemory({ points: burst, duration }));
  const started = () => onStart(performance.now());
  return () => {
    queue.removeTokens(1).then(started);
  };
}
