// @ts-check
import Bottleneck from "bottleneck";
import { Redis } from "ioredis";

/** @param {string} url @param {number} keys */
export async function deciding(url, keys) {
  const connection = new Bottleneck.IORedisConnection({ client: new Redis(url), Redis });
  const group = new Bottleneck.Group({ connection, datastore: "ioredis", id: "bench", reservoir: 100_000_000 });
  const limiters = Array.from({ length: keys }, (_, index) => group.key(`host ${index}`));
  await Promise.all(limiters.map((limiter) => limiter.ready()));
  return (/** @type {number} */ key) => limiters[key].schedule(async () => undefined);
}
