// @ts-check
import { Redis } from "ioredis";
import { politely } from "politely";
import { redisStore } from "politely/redis";
import { askedKey, takeOne } from "../harness/askedKey.mjs";

const FAST = { rateCount: 1, ratePerUs: 1, burst: 100_000_000 };
/** One rule object for each kind of key, as a policy has. */
const RATE = askedKey(FAST);
const LONG = [
  { count: 1_000_000, perUs: 1_000_000, grainUs: 977 },
  { count: 10_000_000, perUs: 60_000_000, grainUs: 58_594 },
];
const WINDOWS = askedKey({ ...FAST, windows: LONG });
/**
 * A rate with cooldowns and an answer remembered for each asker; with `isRich`, two windows and a global rate as well.
 * With `isBatch` a whole limiter that takes starts in advance, instead of the store alone.
 *
 * @param {string} url @param {number} keys @param {{ isRich?: boolean; isBatch?: boolean }} options
 */
export async function deciding(url, keys, { isRich = false, isBatch = false }) {
  if (isBatch) return batching(url);
  const store = redisStore(new Redis(url));
  const names = Array.from({ length: keys }, (_, index) => (isRich ? [`host ${index}`, "global"] : [`host ${index}`]));
  const limits = isRich ? [WINDOWS, RATE] : [RATE];
  /** @type {number[]} */
  const sequences = [];
  return async (/** @type {number} */ key, /** @type {number} */ caller) => {
    const sequence = (sequences[caller] ?? 0) + 1;
    sequences[caller] = sequence;
    await takeOne(store, names[key], limits, `bench.${caller}`, sequence);
  };
}

/** @param {string} url */
function batching(url) {
  const fast = { rate: { count: 1_000_000, per: 1_000 }, burst: 10_000 };
  const limiter = politely({ hosts: { "host.test": fast } }, { store: redisStore(new Redis(url)), batch: true });
  return async () => {
    const permit = await limiter.acquire("host.test");
    permit.release();
  };
}
