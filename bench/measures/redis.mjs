// @ts-check
import { Redis } from "ioredis";
import { startRedis } from "../harness/storeServers.mjs";
import { median } from "../harness/timing.mjs";

/** @typedef {(key: number, caller: number) => Promise<unknown>} Decide */
/** @typedef {{ deciding(url: string, keys: number, options: object): Promise<Decide> }} RedisRival */

const IN_FLIGHT = 64;

const politely = { name: "politely", rival: "politelyRedis" };
const batch = {
  name: "politely, batch",
  rival: "politelyRedis",
  options: { isBatch: true },
  note: "acquire and release, 1,000,000/s",
  params: { count: 300_000 },
};
const ping = { name: "PING", rival: "bareRedis", options: { isPing: true } };
const script = { name: "bare script", rival: "bareRedis", note: "the same limits and nothing else" };
const flexible = { name: "rate-limiter-flexible", rival: "rateLimiterFlexibleRedis", note: "counts in fixed windows" };
const bottleneck = { name: "bottleneck", rival: "bottleneckRedis", params: { count: 4_000 } };

const server = { key: "serverUs", title: "µs CPU in Redis", digits: 2 };
const metrics = [
  { key: "perSecond", title: "decisions/s", digits: 0 },
  { key: "clientUs", title: "µs CPU here", digits: 2 },
  server,
];
const toScript = (/** @type {number} */ atLeast) => ({
  text: `at least ${atLeast} × the bare script`,
  metric: "perSecond",
  against: script.name,
  atLeast,
});
const goals = [
  toScript(0.9),
  { text: "at least rate-limiter-flexible's", metric: "perSecond", against: flexible.name, atLeast: 1 },
];
const batchGoal = {
  text: "with batch, at least 5 × the bare script",
  metric: "perSecond",
  of: batch.name,
  against: script.name,
  atLeast: 5,
};
const usual = { params: { keys: 1, count: 60_000, samples: 3 }, quick: { count: 20_000, samples: 2 }, rounds: 5 };

/** Limits of one key, or of a host and `global`, beside a script of the same. @param {string} limits @param {string} words @param {number} atLeast */
const limitsRow = (limits, words, atLeast) => ({
  ...usual,
  id: `redis-${limits}`,
  title: `Redis, ${words}, 64 in flight; more is better`,
  metrics,
  contenders: [politely, script].map((one) => ({ ...one, options: { limits } })),
  goals: [toScript(atLeast)],
});

/** @type {import("./types.d.ts").Measure} */
export const redis = {
  name: "redis",
  rows: [
    ...[1, 1_000].map((keys) => ({
      ...usual,
      id: `redis-${keys}`,
      title: `Redis decisions on one connection, 64 in flight, ${keys.toLocaleString("en-US")} ${keys === 1 ? "key" : "keys"}; more is better`,
      metrics,
      contenders: [politely, ...(keys === 1 ? [batch] : []), ping, script, flexible, bottleneck],
      params: { ...usual.params, keys },
      goals: keys === 1 ? [...goals, batchGoal] : goals,
    })),
    limitsRow("window", "a window of 60 that is kept full", 0.6),
    limitsRow("places", "a window of 20, a rate and places, with release", 0.4),
    {
      ...limitsRow("rich", "a rate, two windows of a million and a global rate", 0.5),
      goals: [toScript(0.5), { text: "at most 25 µs in Redis", metric: "serverUs", atMost: 25 }],
    },
    {
      ...usual,
      id: "redis-line",
      title: "Redis, 1,000 processes in line at one key of 100/s, each call; less is better",
      metrics: [server],
      contenders: [{ ...politely, options: { limits: "line" } }],
      goals: [{ text: "at most 60 µs in Redis", metric: "serverUs", atMost: 60 }],
    },
    {
      ...usual,
      id: "redis-log",
      title: "Redis, what a start under 1000/h writes to the append-only file; less is better",
      metrics: [{ key: "bytes", title: "bytes", digits: 0 }],
      contenders: [{ ...politely, options: { limits: "hour" } }],
      params: { keys: 30, count: 10_000, samples: 2, callers: 1, isLogged: true },
      quick: { count: 3_000 },
      goals: [{ text: "at most 300 bytes", metric: "bytes", atMost: 300 }],
    },
    {
      ...usual,
      id: "redis-acquire",
      title: "Redis, acquire and release where nobody else asks, one at a time; less is better",
      metrics: [{ key: "p99Us", title: "µs, 99 %", digits: 0 }],
      contenders: [{ ...politely, options: { isWhole: true } }, ping],
      params: { keys: 1, count: 5_000, samples: 3, callers: 1 },
      quick: { count: 2_000, samples: 2 },
      goals: [{ text: "at most 2 × PING's", metric: "p99Us", against: ping.name, atMost: 2 }],
    },
  ],

  async run(rival, { keys, count, samples, callers = IN_FLIGHT, isLogged = false }, options) {
    const server = await startRedis({ isLogged });
    const own = new Redis(server.url);
    try {
      const contender = /** @type {RedisRival} */ (/** @type {unknown} */ (rival));
      const decide = await contender.deciding(server.url, keys, options);
      await decideMany(decide, keys, Math.min(count, 20_000), callers);
      /** @type {Record<string, number>[]} */
      const results = [];
      for (let sample = 0; sample < samples; sample++) {
        const [client, redisUs, bytes, startMs] = [
          process.cpuUsage(),
          await serverUs(own),
          await logBytes(own),
          performance.now(),
        ];
        const tookUs = await decideMany(decide, keys, count, callers);
        const elapsedMs = performance.now() - startMs;
        const { user, system } = process.cpuUsage(client);
        results.push({
          perSecond: (count * 1_000) / elapsedMs,
          clientUs: (user + system) / count,
          serverUs: ((await serverUs(own)) - redisUs) / count,
          bytes: ((await logBytes(own)) - bytes) / count,
          p99Us: tookUs.sort((a, b) => a - b)[Math.floor(count * 0.99)],
        });
      }
      const middle = (/** @type {string} */ key) => median(results.map((result) => result[key]));
      // The best of the samples: whatever else the machine does only makes them worse.
      return {
        perSecond: Math.max(...results.map(({ perSecond }) => perSecond)),
        p99Us: Math.min(...results.map(({ p99Us }) => p99Us)),
        clientUs: middle("clientUs"),
        serverUs: middle("serverUs"),
        bytes: middle("bytes"),
      };
    } finally {
      await server.stop();
    }
  },
};

/** Says how long each decision took. @param {Decide} decide @param {number} keys @param {number} count @param {number} callers */
async function decideMany(decide, keys, count, callers) {
  let left = count;
  /** @type {number[]} */
  const tookUs = [];
  const caller = async (/** @type {number} */ number) => {
    while (left > 0) {
      left -= 1;
      const startMs = performance.now();
      await decide(left % keys, number);
      tookUs.push((performance.now() - startMs) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  return tookUs;
}

/** What has been written to the append-only file; 0 where there is none. @param {Redis} client */
async function logBytes(client) {
  return Number(/aof_current_size:(\d+)/.exec(await client.info("persistence"))?.[1] ?? 0);
}

/** CPU that the server has used, in microseconds. @param {Redis} client */
async function serverUs(client) {
  const info = await client.info("cpu");
  let seconds = 0;
  for (const match of info.matchAll(/used_cpu_(?:user|sys):([\d.]+)/g)) seconds += Number(match[1]);
  return seconds * 1e6;
}
