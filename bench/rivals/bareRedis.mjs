// @ts-check
// What Redis itself costs: a PING, and the least scripts that keep the same limits and nothing else. Their logs of starts cost the same however long
// they are: a list whose oldest entry is looked at once it is full.
import { createHash } from "node:crypto";
import { Redis } from "ioredis";

/** Limits as functions: `rate(key, gap, burst)` and `window(key, count, per)` say whether a start is possible; each has a way to count it. */
const LIMITS = `
local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local function rate(key, gap, burst)
  local due = math.max(now, tonumber(redis.call("GET", key) or "0"))
  return due - now <= gap * burst, due + gap
end
local function count(key, due) redis.call("SET", key, string.format("%.0f", due), "PX", 60000) end
local function window(key, most, per)
  return redis.call("LLEN", key) < most or tonumber(redis.call("LINDEX", key, -1)) <= now - per
end
local function log(key, most)
  if redis.call("LPUSH", key, now) > most then redis.call("RPOP", key) end
  redis.call("PEXPIRE", key, 60000)
end
`;

const SCRIPTS = {
  rate: `
local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local due = tonumber(redis.call("GET", KEYS[1]) or "0")
if due < now then due = now end
local gap = tonumber(ARGV[1])
if due - now > gap * tonumber(ARGV[2]) then return { 0, due - now } end
redis.call("SET", KEYS[1], string.format("%.0f", due + gap), "PX", 60000)
return { 1, 0 }
`,
  window: `${LIMITS}
if not window(KEYS[1], 60, 10000) then return { 0, 0 } end
log(KEYS[1], 60)
return { 1, 0 }
`,
  places: `${LIMITS}
if ARGV[1] == "release" then return { redis.call("ZREM", KEYS[3], ARGV[2]), 0 } end
local isFree, due = rate(KEYS[1], 1, 100000000)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", now)
if not isFree or not window(KEYS[2], 20, 100) or redis.call("ZCARD", KEYS[3]) >= 64 then return { 0, 0 } end
count(KEYS[1], due)
log(KEYS[2], 20)
redis.call("ZADD", KEYS[3], now + 30000000, ARGV[2])
redis.call("PEXPIRE", KEYS[3], 60000)
return { 1, 0 }
`,
  rich: `${LIMITS}
local isFree, due = rate(KEYS[1], 1, 100000000)
local isFreeToo, dueToo = rate(KEYS[2], 1, 100000000)
if not isFree or not isFreeToo or not window(KEYS[3], 1000000, 1000000) or not window(KEYS[4], 10000000, 60000000) then return { 0, 0 } end
count(KEYS[1], due)
count(KEYS[2], dueToo)
log(KEYS[3], 1000000)
log(KEYS[4], 10000000)
return { 1, 0 }
`,
};

/** @param {string} url @param {number} keys @param {{ isPing?: boolean; limits?: keyof typeof SCRIPTS }} options */
export async function deciding(url, keys, { isPing = false, limits = "rate" }) {
  const client = new Redis(url);
  if (isPing) return () => client.ping();
  const script = SCRIPTS[limits];
  await client.script("LOAD", script);
  const sha = createHash("sha1").update(script).digest("hex");
  const names = Array.from({ length: keys }, (_, index) => [0, 1, 2, 3].map((part) => `{bare}:${index}:${part}`));
  if (limits === "rate") return (/** @type {number} */ key) => client.evalsha(sha, 1, names[key][0], "1", "100000000");
  if (limits !== "places") return (/** @type {number} */ key) => client.evalsha(sha, 4, ...names[key], "take");
  return async (/** @type {number} */ key, /** @type {number} */ caller) => {
    const [isGranted] = /** @type {[number, number]} */ (
      await client.evalsha(sha, 4, ...names[key], "take", `bench.${caller}`)
    );
    if (isGranted === 1) await client.evalsha(sha, 4, ...names[key], "release", `bench.${caller}`);
  };
}
