// @ts-check
import { Redis } from "ioredis";
import { startRedis } from "../harness/storeServers.mjs";
import { median } from "../harness/timing.mjs";

/** @typedef {(key: number, caller: number) => Promise<unknown>} Decide */
/** @typedef {{ deciding(url: string, keys: number, options: object): Promise<Decide> }} RedisRival */

const IN_FLIGHT = 64;

const politely = { name: "politely", rival: "politelyRedis" };
const rich = {
  name: "politely, windows",
  rival: "politelyRedis",
  options: { isRich: true },
  note: "rate, two windows, global",
  params: { count: 4_000 },
};
const batch = {
  name: "politely, batch",
  rival: "politelyRedis",
  options: { isBatch: true },
  note: "acquire and release, 1,000,000/s",
  params: { count: 300_000 },
};
const ping = { name: "PING", rival: "bareRedis", options: { isPing: true } };
const script = { name: "bare script", rival: "bareRedis", note: "one key, one rate" };
const flexible = { name: "rate-limiter-flexible", rival: "rateLimiterFlexibleRedis", note: "counts in fixed windows" };
const bottleneck = { name: "bottleneck", rival: "bottleneckRedis", params: { count: 4_000 } };

const metrics = [
  { key: "perSecond", title: "decisions/s", digits: 0 },
  { key: "clientUs", title: "µs CPU here", digits: 2 },
  { key: "serverUs", title: "µs CPU in Redis", digits: 2 },
];
const goals = [
  { text: "at least 0.85 × the bare script", metric: "perSecond", against: script.name, atLeast: 0.85 },
  { text: "at least rate-limiter-flexible's", metric: "perSecond", against: flexible.name, atLeast: 1 },
];

const batchGoal = {
  text: "with batch, at least 5 × the bare script",
  metric: "perSecond",
  of: batch.name,
  against: script.name,
  atLeast: 5,
};

/** @type {import("./types.d.ts").Measure} */
export const redis = {
  name: "redis",
  rows: [1, 1_000].map((keys) => ({
    id: `redis-${keys}`,
    title: `Redis decisions on one connection, 64 in flight, ${keys.toLocaleString("en-US")} ${keys === 1 ? "key" : "keys"}; more is better`,
    metrics,
    contenders: [politely, ...(keys === 1 ? [batch] : []), rich, ping, script, flexible, bottleneck],
    params: { keys, count: 60_000, samples: 3 },
    quick: { count: 20_000, samples: 2 },
    rounds: 5,
    goals: keys === 1 ? [...goals, batchGoal] : goals,
  })),

  async run(rival, { keys, count, samples }, options) {
    const server = await startRedis();
    const own = new Redis(server.url);
    try {
      const contender = /** @type {RedisRival} */ (/** @type {unknown} */ (rival));
      const decide = await contender.deciding(server.url, keys, options);
      await decideMany(decide, keys, Math.min(count, 20_000));
      /** @type {{ perSecond: number; clientUs: number; serverUs: number }[]} */
      const results = [];
      for (let sample = 0; sample < samples; sample++) {
        const [client, redisUs, startMs] = [process.cpuUsage(), await serverUs(own), performance.now()];
        await decideMany(decide, keys, count);
        const elapsedMs = performance.now() - startMs;
        const { user, system } = process.cpuUsage(client);
        results.push({
          perSecond: (count * 1_000) / elapsedMs,
          clientUs: (user + system) / count,
          serverUs: ((await serverUs(own)) - redisUs) / count,
        });
      }
      // The best of the samples: whatever else the machine does only makes them worse.
      return {
        perSecond: Math.max(...results.map(({ perSecond }) => perSecond)),
        clientUs: median(results.map(({ clientUs }) => clientUs)),
        serverUs: median(results.map((result) => result.serverUs)),
      };
    } finally {
      await server.stop();
    }
  },
};

/** @param {Decide} decide @param {number} keys @param {number} count */
async function decideMany(decide, keys, count) {
  let left = count;
  const caller = async (/** @type {number} */ number) => {
    while (left > 0) {
      left -= 1;
      await decide(left % keys, number);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, number) => caller(number)));
}

/** CPU that the server has used, in microseconds. @param {Redis} client */
async function serverUs(client) {
  const info = await client.info("cpu");
  let seconds = 0;
  for (const match of info.matchAll(/used_cpu_(?:user|sys):([\d.]+)/g)) seconds += Number(match[1]);
  return seconds * 1e6;
}
