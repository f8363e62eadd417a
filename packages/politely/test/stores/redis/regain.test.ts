import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { cellStore } from "../../../src/stores/cellStore.js";
import type { LimitOperation, RenewedPlace, ReplyTo } from "../../../src/stores/operations.js";
import { scriptText } from "../../../src/stores/redis/script.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { startRedis } from "../../servers/redis.js";
import { cellsOn } from "./cellsOn.js";
import { keyOf } from "./rules.js";

const second = 1_000_000;

it("places that lapsed are taken again by a renewal in the script as in the core, and nothing else is", {
  timeout: 60_000,
}, async () => {
  await using server = await startRedis({ args: [] });
  const client = new Redis(server.url);
  const texts = scriptText('redis.call("HMGET", "{clock}", "s", "us")');
  let nowUs = 1_800_000_000 * second;
  const script = scriptedStore(client, { prefix: "{regain}:" }, texts);
  const core = cellStore(cellsOn(() => nowUs));
  /** Carries an operation out in both, `afterUs` later, and compares. */
  const both = async <Op extends LimitOperation>(afterUs: number, operation: Op): Promise<ReplyTo<Op>> => {
    nowUs += afterUs;
    await client.hset("{clock}", "s", Math.floor(nowUs / second), "us", nowUs % second);
    const [got, expected] = [await script.transact(["x"], operation), await core.transact(["x"], operation)];
    expect({ operation, reply: got }).toEqual({ operation, reply: expected });
    return expected;
  };
  const times = { maxHoldUs: 100 * second, permitTtlUs: 5 * second };
  const windows = [{ count: 10, perUs: 3_600 * second, grainUs: 1 }];
  const own = keyOf({ concurrency: 3, windows, rateCount: 5, ratePerUs: second, burst: 5, ...times });
  const take = (asker: string, number: number, count: number) =>
    ({
      kind: "take",
      asker,
      number,
      isAgain: false,
      keys: [own],
      count,
      horizonUs: 0,
      grainUs: 1,
      doesWait: false,
      isTold: false,
    }) as const;
  const look = async () => (await both(0, { kind: "look", keys: [own] })).keys[0];
  const renew = (process: string, places: readonly RenewedPlace[]) => {
    const told = { completeBefore: 100, gone: [], isLeaving: false };
    return { kind: "renew", process, rules: [own.rule], places: [places], ...told } as const;
  };
  try {
    const { grants } = await both(0, take("p.1", 1, 2));
    const places = grants.map(({ startedUs }, which): RenewedPlace => {
      return { id: `p.1#1#${which}`, startedUs, units: 1, pendingUnits: 0, maxHoldUs: 100 * second, ttlUs: 5 * second };
    });
    // The place of somebody else, who came meanwhile.
    await both(6 * second, take("q.1", 2, 1));
    const before = await look();
    expect(before).toMatchObject({ inFlight: 1, starts: 3 });
    await both(second, renew("p", places));
    const { lastUs } = before;
    expect(await look()).toMatchObject({ inFlight: 3, starts: 3, lastUs, windows: [{ used: 3 }] });
    expect(await both(0, take("p.1", 3, 1))).toMatchObject({ grants: [], stop: { limit: "concurrency" } });
    await both(3 * second, renew("p", places));
    await both(second / 2, renew("p", places.slice(1)));
    // Places that a process does not name any more are free, and those of processes that are silent.
    expect(await look()).toMatchObject({ inFlight: 2, starts: 3, lastUs });
    await both(2 * second, renew("p", places.slice(1)));
    expect(await look()).toMatchObject({ inFlight: 1, starts: 3, lastUs });
  } finally {
    client.disconnect();
  }
});
