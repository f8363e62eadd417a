// @ts-check
// What Redis itself costs: a PING, and the least script that limits a rate: one clock read, one key read, one key written.
import { createHash } from "node:crypto";
import { Redis } from "ioredis";

const SCRIPT = `
local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local due = tonumber(redis.call("GET", KEYS[1]) or "0")
if due < now then due = now end
local gap = tonumber(ARGV[1])
if due - now > gap * tonumber(ARGV[2]) then return { 0, due - now } end
redis.call("SET", KEYS[1], string.format("%.0f", due + gap), "PX", 60000)
return { 1, 0 }
`;

/** @param {string} url @param {number} keys @param {{ isPing?: boolean }} options */
export async function deciding(url, keys, { isPing = false }) {
  const client = new Redis(url);
  if (isPing) return () => client.ping();
  const names = Array.from({ length: keys }, (_, index) => `{bare}:${index}`);
  await client.script("LOAD", SCRIPT);
  const sha = createHash("sha1").update(SCRIPT).digest("hex");
  return (/** @type {number} */ key) => client.evalsha(sha, 1, names[key], "1", "100000000");
}
