// @ts-check
import { Redis } from "ioredis";
import { politely } from "politely";
import { redisStore } from "politely/redis";
import { askedKey, takeNow } from "../harness/askedKey.mjs";

const FAST = { rateCount: 1, ratePerUs: 1, burst: 100_000_000 };
const NONE = { rateCount: 0, ratePerUs: 0, burst: 1 };
const LONG = [
  { count: 1_000_000, perUs: 1_000_000, grainUs: 977 },
  { count: 10_000_000, perUs: 60_000_000, grainUs: 58_594 },
];
/** What each of the keys of a request is limited by: one rule object for each kind of key, as a policy has. */
const LIMITS = {
  rate: [askedKey(FAST)],
  window: [askedKey({ ...NONE, windows: [{ count: 60, perUs: 10_000, grainUs: 1 }] })],
  places: [askedKey({ ...FAST, windows: [{ count: 20, perUs: 100, grainUs: 1 }], concurrency: 64 })],
  rich: [askedKey({ ...FAST, windows: LONG }), askedKey(FAST)],
  hour: [askedKey({ ...NONE, windows: [{ count: 1_000, perUs: 3_600_000_000, grainUs: 1 }] })],
  line: [askedKey({ rateCount: 1, ratePerUs: 10_000, burst: 1 })],
};

/** Processes that wait at one key. */
const MEMBERS = 1_000;

/** A place that is given back: its answer says no more than that it went well. */
const ANSWER = { retryAfterUs: 0, latencyUs: undefined, because: "", scope: undefined, budget: undefined };

/**
 * The store alone: its limits with cooldowns, and an answer remembered for each asker. One that waits in line has an asker of its own for each set of keys;
 * so it is here where there are more keys than callers.
 * With `isBatch` a whole limiter that takes starts in advance, with `isWhole` one that does not.
 *
 * @param {string} url @param {number} keys @param {{ limits?: keyof typeof LIMITS; isBatch?: boolean; isWhole?: boolean }} options
 */
export async function deciding(url, keys, { limits = "rate", isBatch = false, isWhole = false }) {
  if (isBatch || isWhole) return limiting(url, isBatch);
  const store = redisStore(new Redis(url));
  const asked = LIMITS[limits];
  const names = Array.from({ length: keys }, (_, index) => [`host ${index}`, "global"].slice(0, asked.length));
  let number = 0;
  return async (/** @type {number} */ key, /** @type {number} */ caller) => {
    number += 1;
    const own = number;
    const asker = limits === "line" ? `bench${own % MEMBERS}.1` : `bench.${keys > 1 ? key : caller}`;
    const [granted] = await takeNow(store, names[key], asked, asker, own, limits === "line");
    if (granted === undefined || limits !== "places") return;
    const parts = asked.map(({ rule, cost }, index) => {
      const { previousUs, unitsBefore, period } = granted.parts[index];
      const unused = { rate: 0, window: 0, quota: 0 };
      return { rule, cost, previousUs, unitsAfter: unitsBefore + 1, period, unused, isMeant: true };
    });
    number += 1;
    const { startedUs } = granted;
    const answer = /** @type {const} */ ({ ...ANSWER, kind: "success" });
    const place = `${asker}#${own}#0`;
    const told = { asker, number, isAgain: false, startedUs, grantedUs: startedUs, place, isOver: true, random: 0 };
    await store.transact(names[key], { kind: "settle", ...told, keys: parts, answer });
  };
}

/** @param {string} url @param {boolean} isBatch */
function limiting(url, isBatch) {
  const fast = { rate: { count: 1_000_000, per: 1_000 }, burst: 10_000 };
  const limiter = politely({ hosts: { "host.test": fast } }, { store: redisStore(new Redis(url)), batch: isBatch });
  return async () => {
    const permit = await limiter.acquire("host.test");
    permit.release();
  };
}
