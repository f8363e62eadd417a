import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cellStore } from "../../../src/stores/cellStore.js";
import type { LookReply, RecordOperation, TakeOperation, TakeReply } from "../../../src/stores/operations.js";
import { scriptText } from "../../../src/stores/redis/script.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { seeded } from "../../laws/seeded.js";
import { startRedis } from "../../servers/redis.js";
import type { RedisServer } from "../../servers/redisProcess.js";
import { cellsOn } from "./cellsOn.js";
import { bucketHistory, fullHistory, type History, history, longHistory, waitingHistory } from "./history.js";
import { Player } from "./player.js";
import { keyOf } from "./rules.js";

/** The scripts as they are, but for the line that asks Redis for the time: that is kept in a hash. */
const texts = scriptText('redis.call("HMGET", "{clock}", "s", "us")');
const hourUs = 3_600_000_000;
/** Half an hour after one began: the clock can be set back by so much. */
const firstUs = 1_800_000_000_000_000 + hourUs / 2;

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

/** Plays a history through both and compares each reply. So many operations each time come at one instant, and share a call of the script. */
async function play({ rules, steps }: History, together = 1): Promise<void> {
  let nowUs = firstUs;
  const prefix = `{${++histories}}:`;
  const script = scriptedStore(client, { prefix }, texts);
  const core = cellStore(cellsOn(() => nowUs));
  const player = new Player({ rules, steps });
  /** How often the clock was set back far, and how often when each asker spoke last. */
  let backs = 0;
  const spokenAt = new Map<string, number>();
  for (let from = 0; from < steps.length; from += together) {
    // A process remembers the latest period there has been, a script only those of its keys: no clock goes back to the one before.
    const movedUs = Math.max(steps[from].stepUs, Math.floor(nowUs / hourUs) * hourUs - nowUs);
    nowUs += movedUs;
    player.move(movedUs);
    if (movedUs < -2_000_000) backs += 1;
    const compared: (() => Promise<void>)[] = [];
    for (const { action } of steps.slice(from, from + together)) {
      const played = player.operation(action, nowUs);
      if (played === undefined) continue;
      const { keys, operation } = played;
      const expected = (await core.transact(keys, operation)) as object;
      count("operations");
      count(operation.kind);
      if ("asker" in operation) {
        const { asker } = operation;
        if (action.kind === "again" && (spokenAt.get(asker) ?? 0) < backs)
          count("repeated after the clock was set back");
        spokenAt.set(asker, backs);
      }
      compared.push(async () => {
        const got = await script.transact(keys, operation);
        if (played.isHeard === false) return;
        expect(got, `${JSON.stringify(keys)} ${JSON.stringify(operation)}`).toEqual(expected);
      });
      if (played.isHeard === false) continue;
      player.heard(played, expected);
      if (operation.kind === "take") countTake(operation, expected as TakeReply);
      if (operation.kind === "record") countRecord(operation);
      if (operation.kind === "look") for (const { limit } of (expected as LookReply).told) count(`told of ${limit}`);
    }
    await client.hset("{clock}", "s", Math.floor(nowUs / 1_000_000), "us", nowUs % 1_000_000);
    // What lacks a calendar is sent again, after the others.
    if (together > 1) for (const rule of rules) await script.transact(["none"], { kind: "look", keys: [keyOf(rule)] });
    await Promise.all(compared.map((compare) => compare()));
  }
  await everyKeyExpires(prefix);
}

function count(what: string): void {
  seen.set(what, (seen.get(what) ?? 0) + 1);
}

function countTake({ isTold }: TakeOperation, reply: TakeReply): void {
  const { nowUs, grants, stop, isHeld, isFollowed, members } = reply;
  if (stop !== undefined) count(`stopped by ${stop.limit}`);
  if (isTold && stop?.awaitedUntilUs !== undefined) count("told when an answer has come");
  if (grants.length > 1) count("several starts");
  if (grants.some((grant) => grant.count > 1)) count("together");
  if (grants.filter((grant) => grant.count > 1).length > 1) count("two bursts");
  if (grants.some(({ startedUs }) => startedUs > nowUs)) count("granted ahead");
  if (isHeld) count("held");
  if (isFollowed) count("followed");
  if (members > 1) count("fleet");
}

function countRecord({ keys, agesUs, units }: RecordOperation): void {
  if (units !== undefined) count("units recorded");
  const hasOld = agesUs.some((ageUs) => ageUs > 24 * hourUs);
  if (hasOld && keys.some(({ rule }) => rule.quota !== undefined)) count("recorded in an earlier period");
}

async function everyKeyExpires(prefix: string): Promise<void> {
  const names = await client.keys(`${prefix}*`);
  const ttls = await Promise.all(names.map((name) => client.pttl(name)));
  expect(names.filter((_, index) => ttls[index] === -1)).toEqual([]);
  if (names.length > 0) await client.unlink(...names);
}

describe("the script answers as the core does, whatever the clock does, and lets every key expire", () => {
  // Looking for a shorter history takes minutes: FC_SHRINK=1 does it.
  const endOnFailure = process.env.FC_SHRINK === undefined;
  const timeout = 60_000 * Number(process.env.FC_TIMES ?? 1);

  it("in random histories of all operations", { timeout }, async () => {
    await fc.assert(
      fc.asyncProperty(history, (one) => play(one)),
      { ...seeded(220), endOnFailure },
    );
    console.info(Object.fromEntries(seen));
    const limits = ["minDelay", "rate", "window", "quota", "concurrency", "cooldown", "headers", "pause", "robots"];
    const stops = [...limits, "queue"].map((kind) => `stopped by ${kind}`);
    const told = [...limits, "probe"].map((kind) => `told of ${kind}`);
    const grants = ["granted ahead", "several starts", "together", "two bursts", "held", "followed", "fleet"];
    const records = ["units recorded", "recorded in an earlier period"];
    const others = [...grants, ...records, "repeated after the clock was set back", "told when an answer has come"];
    const isRare = (what: string): boolean => (seen.get(what) ?? 0) < 5;
    expect([...stops, ...told, ...others].filter(isRare)).toEqual([]);
    expect(seen.get("operations")).toBeGreaterThan(4_000);
  });

  it("in random histories of buckets that get other numbers", { timeout }, async () => {
    await fc.assert(
      fc.asyncProperty(bucketHistory, (one) => play(one)),
      { ...seeded(80), endOnFailure },
    );
  });

  it("when operations share a call", { timeout }, async () => {
    const any = fc.oneof(history, history, bucketHistory, waitingHistory);
    const shared = fc.asyncProperty(any, fc.integer({ min: 2, max: 16 }), play);
    await fc.assert(shared, { ...seeded(120), endOnFailure });
  });

  it("in random histories of those who wait", { timeout }, async () => {
    const before = seen.get("stopped by queue") ?? 0;
    await fc.assert(
      fc.asyncProperty(waitingHistory, (one) => play(one)),
      { ...seeded(80), endOnFailure },
    );
    expect((seen.get("stopped by queue") ?? 0) - before).toBeGreaterThan(10);
  });

  it("when there are more starts than a log keeps", { timeout }, () => play(fullHistory));

  it("in random histories of long windows", { timeout }, async () => {
    await fc.assert(
      fc.asyncProperty(longHistory, (one) => play(one)),
      { ...seeded(40), endOnFailure },
    );
  });
});
