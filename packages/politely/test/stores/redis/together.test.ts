import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TakeOperation } from "../../../src/shared/operation.js";
import { cellStore } from "../../../src/stores/cellStore.js";
import type { IoredisClient } from "../../../src/stores/redis/client.js";
import { scriptTexts } from "../../../src/stores/redis/scripts.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { keyOf, takeOf } from "../../../src/testing/store/operations.js";
import { seeded } from "../../laws/seeded.js";
import { startRedis } from "../../servers/redis.js";
import type { RedisServer } from "../../servers/redisProcess.js";
import { cellsOn } from "./cellsOn.js";

const texts = scriptTexts('redis.call("HMGET", "{clock}", "s", "us")');
const firstUs = 1_800_000_000_000_000;

let server: RedisServer;
let client: Redis;
let runs = 0;
let together = 0;

beforeAll(async () => {
  server = await startRedis({ args: [] });
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** Takes of one turn of the event loop: who asks, and at which key. */
const turn = fc.record({
  stepUs: fc.integer({ min: 50, max: 30_000 }),
  asks: fc.array(fc.constantFrom("a", "a", "a", "b", "c"), { minLength: 1, maxLength: 40 }),
});
const crowd = fc.record({
  limits: fc.record({
    rateCount: fc.integer({ min: 1, max: 5 }),
    ratePerUs: fc.constantFrom(1, 10, 1_000),
    burst: fc.constantFrom(3, 40, 5_000),
    gapUs: fc.constantFrom(0, 0, 0, 2),
  }),
  turns: fc.array(turn, { minLength: 3, maxLength: 12 }),
});

/** A client that remembers in which order askers were served: those granted together first, one after the other. */
function following(order: string[]): IoredisClient {
  return {
    async evalsha(sha, keyCount, ...rest) {
      if (keyCount === 2) order.push(rest[1]);
      const reply = await client.evalsha(sha, keyCount, ...rest);
      if (keyCount > 2) {
        const granted = (reply as readonly unknown[]).flatMap((one, index) =>
          one === null ? [] : [rest[2 * index + 1]],
        );
        together += granted.length;
        order.push(...granted);
      }
      return reply;
    },
    eval: (...args) => client.eval(...args),
  };
}

describe("takes that are sent together", () => {
  it("are answered as the core would have, one after the other, and each counts once", async () => {
    const play = async ({
      limits,
      turns,
    }: {
      limits: Parameters<typeof keyOf>[0];
      turns: readonly { stepUs: number; asks: readonly string[] }[];
    }) => {
      const prefix = `{${++runs}}:`;
      const order: string[] = [];
      let [nowUs, coreUs] = [firstUs, firstUs];
      const core = cellStore(cellsOn(() => coreUs));
      const key = keyOf(limits);
      let sequence = 0;
      const tick = (): Promise<number> =>
        client.hset("{clock}", "s", Math.floor(nowUs / 1_000_000), "us", nowUs % 1_000_000);
      // Each asker must be known, or it is served alone.
      const warm = scriptedStore(client, { prefix }, texts);
      await tick();
      for (let index = 0; index < 40; index++) {
        await warm.transact(["warm"], takeOf({ asker: `p:${index}`, sequence: 0 }, [keyOf({})]));
      }
      for (const { stepUs, asks } of turns) {
        nowUs += stepUs;
        sequence += 1;
        await tick();
        // A store that has just refused somebody in company serves all alone for a while: a new one does not, once it has its scripts.
        const script = scriptedStore(following(order), { prefix }, texts);
        await script.transact(["warm"], { kind: "look", keys: [key] });
        const operations = asks.map((_, index): TakeOperation => takeOf({ asker: `p:${index}`, sequence }, [key]));
        order.length = 0;
        const replies = await Promise.all(asks.map((name, index) => script.transact([name], operations[index])));
        expect(order.toSorted()).toEqual(operations.map(({ asker }) => `${prefix}a:${asker}`).toSorted());
        for (const name of order) {
          const index = Number(name.slice(name.lastIndexOf(":") + 1));
          // Those granted together are a microsecond apart; the others come when the clock says the same as before.
          coreUs = replies[index].starts.length === 1 ? replies[index].nowUs : nowUs;
          expect(replies[index]).toEqual(await core.transact([asks[index]], operations[index]));
        }
        const again = await script.transact([asks[0]], operations[0]);
        if (replies[0].starts.length === 1) expect(again).toEqual(replies[0]);
        else coreUs = nowUs;
        if (replies[0].starts.length === 0) await core.transact([asks[0]], operations[0]);
      }
    };
    await fc.assert(fc.asyncProperty(crowd, play), { ...seeded(60), endOnFailure: true });
    expect(together).toBeGreaterThan(200);
  });
});
