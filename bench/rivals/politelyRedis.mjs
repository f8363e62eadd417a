// @ts-check
import { Redis } from "ioredis";
import { politely } from "politely";
import { redisStore } from "politely/redis";

const FAST = { rateCount: 1, ratePerUs: 1, burst: 100_000_000 };
/** One rule object for each kind of key, as a policy has. */
const RATE = keyOf(FAST);
const WINDOWS = keyOf({ ...FAST, windows: [1_000_000, 1_000_000, 977, 10_000_000, 60_000_000, 58_594] });
const LEASE_US = 30_000_000;
const MAX_HOLD_US = 600_000_000;

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
    const { starts } = await store.transact(names[key], {
      kind: "take",
      asker: `bench:${caller}`,
      sequence,
      keys: limits,
      count: 1,
      horizonUs: 2_000,
      ticket: "",
      turnUs: 0,
      joinedUs: 0,
      hasMore: false,
      leaseUs: LEASE_US,
      maxHoldUs: MAX_HOLD_US,
      member: "",
    });
    if (starts.length !== 1) throw new Error("a start was refused");
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

/** @param {{ rateCount: number; ratePerUs: number; burst: number; windows?: number[] }} limits */
function keyOf({ windows = [], ...bucket }) {
  const rule = { gapUs: 0, ...bucket, windows, quota: 0, calendar: "", concurrency: 0, fromAnswer: false };
  const cost = { rate: 1, window: 1, quota: 1 };
  return { rule, ruleId: JSON.stringify(rule), cost, slowUs: 0, period: undefined };
}
