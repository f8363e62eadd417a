// @ts-check
import { Redis } from "ioredis";
import flexible from "rate-limiter-flexible";

/** @param {string} url @param {number} keys */
export async function deciding(url, keys) {
  const limiter = new flexible.RateLimiterRedis({ storeClient: new Redis(url), points: 100_000_000, duration: 60 });
  const names = Array.from({ length: keys }, (_, index) => `host ${index}`);
  return (/** @type {number} */ key) => limiter.consume(names[key]);
}
