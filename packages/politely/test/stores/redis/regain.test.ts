import { Redis } from "ioredis";
import { expect, it } from "vitest";
import type { PlanKey } from "../../../src/scheduler/shared/plan.js";
import { placesOnly, withoutPlace, withoutStarts } from "../../../src/scheduler/shared/renewalPlaces.js";
import type { LimitOperation, TakeReply } from "../../../src/shared/operation.js";
import { placeName } from "../../../src/shared/take.js";
import { cellStore } from "../../../src/stores/cellStore.js";
import { scriptTexts } from "../../../src/stores/redis/scripts.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { keyOf, takeOf } from "../../../src/testing/store/operations.js";
import { startRedis } from "../../servers/redis.js";
import { cellsOn } from "./cellsOn.js";

const second = 1_000_000;

it("places that lapsed are taken again in the script as in the core, and nothing else is", {
  timeout: 60_000,
}, async () => {
  await using server = await startRedis({ args: [] });
  const client = new Redis(server.url);
  const texts = scriptTexts('redis.call("HMGET", "{clock}", "s", "us")');
  let nowUs = 1_800_000_000 * second;
  const script = scriptedStore(client, { prefix: "{regain}:" }, texts);
  const core = cellStore(cellsOn(() => nowUs));
  /** Carries an operation out in both, `afterUs` later, and compares. */
  const both = async <Op extends LimitOperation>(afterUs: number, operation: Op) => {
    nowUs += afterUs;
    await client.hset("{clock}", "s", Math.floor(nowUs / second), "us", nowUs % second);
    const [got, expected] = [await script.transact(["x"], operation), await core.transact(["x"], operation)];
    expect({ operation, reply: got }).toEqual({ operation, reply: expected });
    return expected;
  };
  const own = keyOf({ concurrency: 3, windows: [10, 3_600 * second, 1], rateCount: 5, ratePerUs: second, burst: 5 });
  const rule = {
    cooldownUs: [60 * second],
    backoff: { kind: "linear", baseUs: 1, maxUs: 1, jitter: 0 },
    enabled: true,
  };
  const key = { rule, shared: own.rule, ruleId: own.ruleId } as unknown as PlanKey;
  const look = () => both(0, { kind: "look", keys: [own] });
  const terms = { ticket: "p/places", leaseUs: 5 * second, maxHoldUs: 100 * second };
  try {
    await both(0, takeOf({ asker: "p:1", sequence: 1 }, [own], { count: 2, leaseUs: 5 * second }));
    // The place of somebody else, who came meanwhile.
    await both(6 * second, takeOf({ asker: "q:1", sequence: 1 }, [own], { leaseUs: 60 * second }));
    const before = (await look()).keys[0];
    expect(before).toMatchObject({ held: 1, starts: 3 });
    const taker = { asker: "p:2", sequence: 2 };
    const taken: TakeReply = await both(second, placesOnly(key, { ...terms, count: 2 }, taker));
    expect(taken.starts).toHaveLength(2);
    await both(0, withoutStarts(key, taker, taken, { asker: "p:3", sequence: 3 }));
    expect((await look()).keys[0]).toMatchObject({
      held: 3,
      starts: 3,
      lastUs: before.lastUs,
      windows: [3, expect.any(Number)],
    });
    const third: TakeReply = await both(0, placesOnly(key, { ...terms, count: 1 }, { asker: "p:2", sequence: 4 }));
    expect(third).toMatchObject({ starts: [], stop: { kind: "concurrency" } });
    const places = [0, 1].map((number) => placeName(taker, number));
    const renewed = { kind: "renew", asker: "p:4", sequence: 5, places, leaseUs: 5 * second } as const;
    expect((await both(3 * second, renewed)).lost).toEqual([]);
    for (const [number, place] of places.entries())
      await both(second, withoutPlace(key, place, { asker: "p:5", sequence: 6 + number }));
    expect((await look()).keys[0]).toMatchObject({ held: 1, starts: 3, lastUs: before.lastUs });
  } finally {
    client.disconnect();
  }
});
