import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TakeReply } from "../../../src/shared/operation.js";
import { cellStore } from "../../../src/stores/cellStore.js";
import { STOP_KINDS } from "../../../src/stores/redis/blocksLua.js";
import type { IoredisClient } from "../../../src/stores/redis/client.js";
import { scriptTexts } from "../../../src/stores/redis/scripts.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { seeded } from "../../laws/seeded.js";
import { startRedis } from "../../servers/redis.js";
import type { RedisServer } from "../../servers/redisProcess.js";
import { cellsOn } from "./cellsOn.js";
import { bucketHistory, busyHistory, type History, history, waitingHistory } from "./history.js";
import { Player } from "./player.js";

/** The scripts as they are, but for the line that asks Redis for the time: that is kept in a hash. */
const texts = scriptTexts('redis.call("HMGET", "{clock}", "s", "us")');
const firstUs = 1_800_000_000_000_000;

let server: RedisServer;
let client: Redis;
let histories = 0;
/** How often something was seen, so that nothing can pass by never being tried. */
const seen = new Map<string, number>();

beforeAll(async () => {
  server = await startRedis({ args: [] });
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** Plays a history through both and compares each reply. */
async function play({ rules, steps }: History): Promise<void> {
  let nowUs = firstUs;
  const script = scriptedStore(listening(client), { prefix: `{${++histories}}:` }, texts);
  const core = cellStore(cellsOn(() => nowUs));
  const player = new Player({ rules, steps });
  for (const { stepUs, action } of steps) {
    nowUs += stepUs;
    player.move(stepUs);
    const played = player.operation(action, nowUs);
    if (played === undefined) continue;
    const { keys, operation } = played;
    // Both travel on one connection, one behind the other.
    const set = client.hset("{clock}", "s", Math.floor(nowUs / 1_000_000), "us", nowUs % 1_000_000);
    const [expected, got] = await Promise.all([
      core.transact(keys, operation) as Promise<object>,
      script.transact(keys, operation) as Promise<object>,
      set,
    ]);
    count("operations");
    count(operation.kind);
    if (!played.isHeard) continue;
    expect(got, `${JSON.stringify(keys)} ${JSON.stringify(operation)}`).toEqual(expected);
    player.heard(played, expected);
    if (operation.kind === "take") countTake(expected as TakeReply);
  }
  await everyKeyExpires(`{${histories}}:`);
}

function count(what: string): void {
  seen.set(what, (seen.get(what) ?? 0) + 1);
}

function countTake({ nowUs, starts, stop, isCooling, isStalePeriod, stricterAt, fleet }: TakeReply): void {
  if (stop !== undefined) count(`stopped by ${stop.kind}`);
  if (starts.length > 1) count("several starts");
  if (starts.some(({ startedUs }) => startedUs > nowUs)) count("granted ahead");
  if (isCooling) count("cooling");
  if (isStalePeriod) count("wrong period");
  if (stricterAt >= 0) count("stricter");
  if (fleet > 1) count("fleet");
}

/** A client that counts replies of the short way, and of runs. */
function listening(to: Redis): IoredisClient {
  return {
    async evalsha(...args) {
      const reply = await to.evalsha(...args);
      if (typeof reply === "string") count("short way");
      if (Array.isArray(reply) && reply[4] < 0) count("run");
      return reply;
    },
    eval: (...args) => to.eval(...args),
  };
}

async function everyKeyExpires(prefix: string): Promise<void> {
  const names = await client.keys(`${prefix}*`);
  const ttls = await Promise.all(names.map((name) => client.pttl(name)));
  expect(ttls.filter((ttl) => ttl <= 0)).toEqual([]);
  if (names.length > 0) await client.unlink(...names);
}

describe("the script answers as the core does, whatever the clock does, and lets every key expire", () => {
  // Looking for a shorter history takes minutes: FC_SHRINK=1 does it.
  const endOnFailure = process.env.FC_SHRINK === undefined;
  const timeout = 60_000 * Number(process.env.FC_TIMES ?? 1);

  it("in random histories of all operations", { timeout }, async () => {
    await fc.assert(fc.asyncProperty(history, play), { ...seeded(160), endOnFailure });
    console.info(Object.fromEntries(seen));
    const stops = STOP_KINDS.map((kind) => `stopped by ${kind}`);
    const others = ["granted ahead", "several starts", "cooling", "wrong period", "stricter", "fleet"];
    const isRare = (what: string): boolean => (seen.get(what) ?? 0) < 5;
    expect([...stops, ...others].filter(isRare)).toEqual([]);
    expect(seen.get("operations")).toBeGreaterThan(4_000);
  });

  it("in random histories of buckets that get other numbers", { timeout }, async () => {
    await fc.assert(fc.asyncProperty(bucketHistory, play), { ...seeded(80), endOnFailure });
  });

  it("in random histories of those who wait", { timeout }, async () => {
    const before = seen.get("stopped by queue") ?? 0;
    await fc.assert(fc.asyncProperty(waitingHistory, play), { ...seeded(80), endOnFailure });
    expect((seen.get("stopped by queue") ?? 0) - before).toBeGreaterThan(10);
  });

  it("in random histories of a busy key", { timeout }, async () => {
    await fc.assert(fc.asyncProperty(busyHistory, play), { ...seeded(80), endOnFailure });
    console.info(`short way: ${seen.get("short way")}, run: ${seen.get("run")}`);
    expect(seen.get("short way")).toBeGreaterThan(300);
    expect(seen.get("run")).toBeGreaterThan(50);
  });
});
