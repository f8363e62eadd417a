import { Redis } from "ioredis";
import { createClient, RESP_TYPES } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerOf } from "../../src/core/answer.js";
import type { LookReply } from "../../src/stores/operations.js";
import { redisStore } from "../../src/stores/redis.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { until } from "../fleet/until.js";
import { startRedis } from "../servers/redis.js";
import { askRedis, type RedisServer } from "../servers/redisProcess.js";
import { askerOf, CLIENTS, newName, openTwo, perMinute, quiet } from "./redis/open.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function callsOf(command: string): Promise<number> {
  const info = String(await askRedis(server.port, "INFO", "commandstats"));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
}

for (const [name, open] of Object.entries(CLIENTS)) {
  describe(`a store in Redis, through ${name}`, () => {
    for (const { title, run } of storeSuite("Redis", () => openTwo(() => open(server.url)))) it(`${title}`, run);

    it("asks once for each operation, whatever it is", async () => {
      const { store, close } = await open(server.url);
      const asker = askerOf(store);
      const keys = {
        [newName()]: perMinute(9, { concurrency: 5, windows: [{ count: 9, perUs: 60_000_000, grainUs: 1 }] }),
        [newName()]: perMinute(9),
      };
      const every = async (): Promise<void> => {
        const taken = await asker.start(keys);
        await asker.settle(taken);
        await asker.lease(newName(), "take");
        await store.transact(Object.keys(keys), { kind: "look", keys: Object.values(keys) });
      };
      await every();
      const [scripts, others] = [await callsOf("evalsha"), await callsOf("eval")];
      await every();
      expect([(await callsOf("evalsha")) - scripts, (await callsOf("eval")) - others]).toEqual([4, 0]);
      await close();
    });

    it("goes on when the script cache is flushed again and again, and counts every start once", async () => {
      const { store, close } = await open(server.url);
      const key = newName();
      let isOver = false;
      const flush = async (): Promise<number> => {
        let flushes = 0;
        for (; !isOver; flushes++) await askRedis(server.port, "SCRIPT", "FLUSH");
        return flushes;
      };
      const flushing = flush();
      const askers = Array.from({ length: 8 }, () => askerOf(store));
      const ask = async (asker: (typeof askers)[number]): Promise<void> => {
        for (let round = 0; round < 100; round++) await asker.start({ [key]: perMinute(1_000) });
      };
      await Promise.all(askers.map(ask));
      isOver = true;
      expect(await flushing).toBeGreaterThan(3);
      expect(await startsOf(store, key)).toBe(800);
      await close();
    });

    it("tells a process that listens whose turn it is, once another has given something back", async () => {
      const [one, other] = [await open(server.url), await open(server.url)];
      const wanted = { [newName()]: perMinute(1_000, { concurrency: 1 }) };
      const [holder, waiter] = [askerOf(one.store), askerOf(other.store)];
      const heard = new Set<string>();
      const stop = other.store.listen?.(waiter.process, (asker) => heard.add(asker));
      const taken = await holder.start(wanted);
      const stopped = await waiter.take(wanted, { doesWait: true });
      expect(stopped.reply.stop).toMatchObject({ limit: "concurrency" });
      await until("the channel is listened to", 5_000, async () => {
        return ((await askRedis(server.port, "PUBSUB", "CHANNELS", `*${waiter.process}`)) as string[]).length === 1;
      });
      expect((await holder.settle(taken)).wake).toEqual([stopped.operation.asker]);
      await until("the waiter has heard", 5_000, async () => heard.size > 0);
      expect([...heard]).toEqual([stopped.operation.asker]);
      stop?.();
      await Promise.all([one.close(), other.close()]);
    });

    it("shares nothing with a store that has another prefix", async () => {
      const [one, other] = [await open(server.url), await open(server.url, { prefix: `{${newName()}}` })];
      const key = newName();
      await askerOf(one.store).start({ [key]: perMinute(1) });
      expect(await startsOf(other.store, key)).toBe(0);
      await askerOf(other.store).start({ [key]: perMinute(1) });
      await Promise.all([one.close(), other.close()]);
    });
  });
}

async function startsOf(store: ReturnType<typeof redisStore>, key: string): Promise<number> {
  const reply: LookReply = await store.transact([key], { kind: "look", keys: [perMinute(1)] });
  return reply.keys[0].starts;
}

describe("a store in Redis", () => {
  it("gives every key an expiry, and every part of one", async () => {
    const client = quiet(new Redis(server.url));
    const prefix = `{${newName()}}:`;
    const asker = askerOf(redisStore(client, { prefix }));
    const windows = [{ count: 5_000, perUs: 60_000_000, grainUs: 58_594 }];
    const wanted = { host: perMinute(1_000, { rateCount: 1_000, windows, concurrency: 4 }) };
    await asker.settle(await asker.start(wanted), { ...answerOf("success"), kind: "unused" });
    for (let round = 0; round < 5; round++) {
      const other = askerOf(asker.store);
      await other.take(wanted, { doesWait: true, keys: [{ ...wanted.host, cost: { rate: 2, window: 1, quota: 1 } }] });
    }
    await asker.lease("run", "take");
    const names = await client.keys(`${prefix}*`);
    const parts = names.filter((name) => name.includes("\n")).map((name) => name.split("\n")[1][0]);
    expect([...new Set(parts)].toSorted()).toEqual(Array.from("5acmoptw"));
    expect(names).toEqual(expect.arrayContaining([`${prefix}k:host`, `${prefix}k:run`]));
    for (const name of names) expect(await client.pttl(name)).toBeGreaterThan(0);
    client.disconnect();
  });

  it("begins anew with a key that was removed, though a reply of its is still there", async () => {
    const client = quiet(new Redis(server.url));
    const prefix = `{${newName()}}:`;
    const store = redisStore(client, { prefix });
    const [one, other] = [askerOf(store), askerOf(store)];
    const { operation } = await one.take({ host: perMinute(5) });
    await other.take({ host: perMinute(5) });
    await client.del(`${prefix}k:host`);
    const { grants, nowUs } = await store.transact(["host"], operation);
    expect([grants.length, grants[0].startedUs - nowUs, grants[0].parts[0].unitsBefore]).toEqual([1, 0, 0]);
    for (const name of await client.keys(`${prefix}*`)) expect(await client.pttl(name)).toBeGreaterThan(0);
    client.disconnect();
  });

  it("lives by the clock of the server", async () => {
    const client = quiet(new Redis(server.url));
    const timeUs = async (): Promise<number> => {
      const [seconds, microseconds] = await client.time();
      return Number(seconds) * 1_000_000 + Number(microseconds);
    };
    const asker = askerOf(redisStore(client));
    const beforeUs = await timeUs();
    const { reply } = await asker.take({ [newName()]: perMinute(5) });
    expect(reply.nowUs).toBeGreaterThanOrEqual(beforeUs);
    expect(reply.nowUs).toBeLessThanOrEqual(await timeUs());
    client.disconnect();
  });

  it("remembers nothing after a restart of a server that keeps nothing, and goes on", async () => {
    await using own = await startRedis({ args: [] });
    const client = quiet(new Redis(own.url));
    const store = redisStore(client);
    const asker = askerOf(store);
    await asker.start({ host: perMinute(5) });
    await own.restart();
    expect(await startsOf(store, "host")).toBe(0);
    await asker.start({ host: perMinute(5) });
    expect(await startsOf(store, "host")).toBe(1);
    client.disconnect();
  });

  it("remembers everything after a server with a log was killed", async () => {
    await using own = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    const client = quiet(new Redis(own.url));
    const store = redisStore(client);
    const asker = askerOf(store);
    for (let round = 0; round < 3; round++) await asker.start({ host: perMinute(3) });
    await own.kill9();
    await own.restart();
    expect(await startsOf(store, "host")).toBe(3);
    expect((await asker.take({ host: perMinute(3) })).reply.grants).toEqual([]);
    client.disconnect();
  });

  it("understands clients that are set to give numbers as text, to begin keys with more, and to queue commands by themselves", async () => {
    const client = quiet(new Redis(server.url, { stringNumbers: true, keyPrefix: "app:", enableAutoPipelining: true }));
    const store = redisStore(client);
    const key = newName();
    const asker = askerOf(store);
    const wanted = { [key]: perMinute(50) };
    const first = await asker.start(wanted);
    const second = await asker.start(wanted);
    expect(second.reply.grants[0].parts).toEqual([
      { previousUs: first.reply.grants[0].startedUs, unitsBefore: 1, period: -1 },
    ]);
    expect(await startsOf(store, key)).toBe(2);
    expect(Number(await client.exists(`{politely}:k:${key}`))).toBe(1);
    client.disconnect();
  });

  it("understands clients that are set to give bytes, and the newer protocol", async () => {
    const client = quiet(
      createClient({ url: server.url, RESP: 3, commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } }),
    );
    await client.connect();
    const store = redisStore(client);
    const key = newName();
    const asker = askerOf(store);
    const wanted = { [key]: perMinute(50) };
    await asker.start(wanted);
    await asker.settle(await asker.start(wanted), answerOf("rate_limited", 0, "429 für ü"));
    const { reply } = await asker.take(wanted);
    expect(reply.stop).toMatchObject({ limit: "cooldown", because: "429 für ü" });
    expect((await asker.lease(key, "look").catch((error: unknown) => error)) instanceof Error).toBe(true);
    expect((await asker.lease(newName(), "take")).isHeld).toBe(true);
    client.destroy();
  });
});

describe("a store in Redis is made of", () => {
  const client = { evalsha: () => Promise.resolve([]), eval: () => Promise.resolve([]) };

  it("a client of ioredis or node-redis", () => {
    for (const wrong of [undefined, null, "redis://localhost", {}, { evalsha: 1, eval: 2 }, new Map()]) {
      expect(() => redisStore(wrong as unknown as typeof client)).toThrow(
        /^redisStore needs a client of ioredis or of redis/,
      );
    }
  });

  it("a prefix with a hash tag", () => {
    for (const prefix of [
      "",
      "politely:",
      "{}:",
      "{politely",
      "politely}",
      5,
      "x".repeat(300),
      `{${"x".repeat(300)}}`,
    ]) {
      expect(() => redisStore(client, { prefix: prefix as string })).toThrow(/^prefix must have a hash tag/);
    }
    for (const prefix of ["{a}", "app:{a}:", "{a}{"]) expect(redisStore(client, { prefix }).name).toBe("Redis");
  });

  it("a time that is neither nothing nor for ever", () => {
    for (const timeoutMs of [0, -1, 99, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 600_001]) {
      expect(() => redisStore(client, { timeoutMs })).toThrow(/^timeoutMs must be a whole number from 100 to 600,000/);
    }
  });
});
