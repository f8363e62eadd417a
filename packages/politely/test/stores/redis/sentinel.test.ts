import { Redis } from "ioredis";
import { createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { redisStore } from "../../../src/stores/redis.js";
import { storeSuite } from "../../../src/testing/storeSuite.js";
import { until } from "../../fleet/until.js";
import { askRedis } from "../../servers/redisProcess.js";
import { type RedisSentinel, startRedisSentinel } from "../../servers/redisSentinel.js";
import { askerOf, newName, type Opened, perMinute, quiet, sharedTwo } from "./open.js";

let system: RedisSentinel;
beforeAll(async () => {
  system = await startRedisSentinel();
}, 60_000);
afterAll(() => system.stop());

const CLIENTS: Readonly<Record<string, () => Promise<Opened>>> = {
  ioredis: async () => {
    const { sentinels, name } = system;
    const client = quiet(new Redis({ sentinels: [...sentinels], name, sentinelRetryStrategy: () => 50 }));
    return { store: redisStore(client, { timeoutMs: 1_000 }), close: async () => client.disconnect() };
  },
  "node-redis": async () => {
    const { sentinels, name } = system;
    const client = quiet(createSentinel({ name, sentinelRootNodes: [...sentinels], scanInterval: 100 }));
    await client.connect();
    return { store: redisStore(client, { timeoutMs: 1_000 }), close: () => client.destroy().then(() => undefined) };
  },
};

describe("a store behind a Redis Sentinel", () => {
  it("goes on at the new master after a failover, with what the old one had passed on, and fails with a StoreError meanwhile", async () => {
    const opened = await Promise.all(Object.values(CLIENTS).map((open) => open()));
    const key = newName();
    const wanted = { [key]: perMinute(1_000) };
    const askers = opened.map(({ store }) => askerOf(store));
    for (const asker of askers) for (let round = 0; round < 5; round++) await asker.start(wanted);
    await askRedis(system.master.port, "WAIT", "1", "5000");
    const failover = system.failover();
    let isOver = false;
    void failover.then(() => {
      isOver = true;
    });
    const failures: unknown[] = [];
    const keepAsking = async (asker: (typeof askers)[number]): Promise<void> => {
      while (!isOver) await asker.take(wanted).catch((error: unknown) => failures.push(error));
    };
    await Promise.all(askers.map(keepAsking));
    await failover;
    expect(failures.filter((error) => !(error instanceof StoreError))).toEqual([]);
    for (const [index, asker] of askers.entries()) {
      await until("the client has found the new master", 20_000, async () =>
        asker.take(wanted).then(
          ({ reply }) => reply.grants.length === 1,
          () => false,
        ),
      );
      const { keys } = await opened[index].store.transact([key], { kind: "look", keys: [perMinute(1)] });
      expect(keys[0].starts).toBeGreaterThanOrEqual(11);
    }
    await Promise.all(opened.map(({ close }) => close()));
  });

  // After the test above: the master is another one now.
  for (const [name, open] of Object.entries(CLIENTS)) {
    const [two, close] = sharedTwo(open);
    afterAll(close);
    for (const { title, run } of storeSuite(`Redis after a failover, through ${name},`, two))
      it(`${title}, through ${name}`, run);
  }
});
