import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storeSuite } from "../../../src/testing/storeSuite.js";
import { type RedisCluster, startRedisCluster } from "../../servers/redisCluster.js";
import { askRedis } from "../../servers/redisProcess.js";
import { askerOf, CLUSTER_CLIENTS, newName, perMinute, sharedTwo } from "./open.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
}, 60_000);
afterAll(() => cluster.stop());

for (const [name, open] of Object.entries(CLUSTER_CLIENTS)) {
  describe(`a store in a Redis Cluster, through ${name}`, () => {
    const [two, close] = sharedTwo(() => open(cluster.nodes));
    afterAll(close);
    for (const { title, run } of storeSuite("Redis Cluster", two)) it(`${title}`, run);

    it("keeps all keys of a prefix on one node, and finds the node of each prefix, though none has the script", async () => {
      for (const { port } of cluster.nodes) await askRedis(port, "SCRIPT", "FLUSH");
      // These tags lie in slots of the first, the second and the third node.
      const prefixes = ["{b}:", "{c}:", "{a}:"];
      const run = newName();
      for (const prefix of prefixes) {
        const { store, close } = await open(cluster.nodes, { prefix });
        const asker = askerOf(store);
        const wanted = {
          [`${run} host`]: perMinute(5),
          [`${run} global`]: perMinute(5),
          [`${run} {x} proxy`]: perMinute(5),
        };
        await Promise.all([asker.start(wanted), asker.lease(`${run} run`, "take")]);
        await close();
      }
      const counts = await Promise.all(
        cluster.nodes.map(async ({ port }) => {
          const there = (await askRedis(port, "KEYS", `*:k:${run}*`)) as string[];
          return there.filter((key) => !key.includes("\n")).length;
        }),
      );
      expect(counts).toEqual([4, 4, 4]);
    });

    it("goes on when the node has forgotten the script in the middle", async () => {
      const { store, close } = await open(cluster.nodes);
      const key = newName();
      const ask = async (): Promise<void> => {
        const asker = askerOf(store);
        for (let round = 0; round < 50; round++) await asker.start({ [key]: perMinute(1_000) });
      };
      const asking = Promise.all([ask(), ask(), ask(), ask()]);
      for (let round = 0; round < 5; round++) {
        for (const { port } of cluster.nodes) await askRedis(port, "SCRIPT", "FLUSH");
      }
      await asking;
      const { keys } = await store.transact([key], { kind: "look", keys: [perMinute(1)] });
      expect(keys[0].starts).toBe(200);
      await close();
    });
  });
}
