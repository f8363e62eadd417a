import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isAlive } from "../fleet/isAlive.js";
import { type RedisCluster, startRedisCluster } from "./redisCluster.js";
import { askRedis } from "./redisProcess.js";
import { type RedisSentinel, startRedisSentinel } from "./redisSentinel.js";

describe("a Redis Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster?.stop());

  it("spreads keys over three masters, and each refuses those of the others", async () => {
    const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => client.set(key, key)));
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
    client.disconnect();

    const sizes = await Promise.all(cluster.nodes.map(({ port }) => askRedis(port, "DBSIZE")));
    expect(sizes).toHaveLength(3);
    expect(sizes.every((size) => Number(size) > 0)).toBe(true);
    expect(sizes.reduce((sum: number, size) => sum + Number(size), 0)).toBe(60);
    const strange = keys.map((key) => askRedis(cluster.nodes[0].port, "GET", key).catch(String));
    expect((await Promise.all(strange)).some((answer) => String(answer).includes("MOVED"))).toBe(true);
  });

  it("leaves no process when it stops", async () => {
    const pids = cluster.nodes.map(({ pid }) => pid);
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    await cluster.stop();
    expect(pids.map(isAlive)).toEqual([false, false, false]);
    await cluster.stop();
  });
});

describe("a master with replica and sentinel", () => {
  let system: RedisSentinel;
  beforeAll(async () => {
    system = await startRedisSentinel();
  });
  afterAll(() => system?.stop());

  it("hands the master's part over, twice, and clients that ask the sentinel follow", async () => {
    const client = new Redis({ sentinels: [...system.sentinels], name: system.name });
    client.on("error", () => {});
    await client.set("key", "0");
    for (const value of ["1", "2"]) {
      await client.wait(1, 5_000);
      const before = system.master;
      await system.failover();
      expect(system.replica.port).toBe(before.port);
      expect(system.master.port).not.toBe(before.port);
      expect(await client.incr("key")).toBe(Number(value));
      expect(await askRedis(system.master.port, "GET", "key")).toBe(value);
      await expect(askRedis(system.replica.port, "SET", "key", "x")).rejects.toThrow("READONLY");
    }
    client.disconnect();
  });

  it("leaves no process when it stops", async () => {
    const { master, replica, sentinels } = system;
    const pids = [master.pid, replica.pid];
    expect(pids.map(isAlive)).toEqual([true, true]);
    await system.stop();
    expect(pids.map(isAlive)).toEqual([false, false]);
    await expect(askRedis(sentinels[0].port, "PING")).rejects.toThrow();
    await system.stop();
  });
});
