import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { expect, it } from "vitest";
import { startPostgres } from "../../../politely/test/servers/postgres.js";
import { startRedis } from "../../../politely/test/servers/redis.js";
import { postgresQueue } from "../../src/get/queue/postgresQueue.js";
import { redisQueue } from "../../src/get/queue/redisQueue.js";
import { sqliteQueue } from "../../src/get/queue/sqliteQueue.js";
import type { UrlQueue } from "../../src/get/queue/urlQueue.js";
import { openSqlite, type SqliteDatabase } from "../../src/get/sqlite.js";
import { queueSuite } from "./queueSuite.js";

queueSuite("SQLite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "politely-queue-"));
  const open: SqliteDatabase[] = [];
  return {
    async open(options) {
      const database = openSqlite(join(folder, "queue.db"));
      open.push(database);
      return sqliteQueue(database, options);
    },
    async close() {
      for (const database of open) database.close();
      rmSync(folder, { recursive: true });
    },
  };
});

it("takes up in a file of its own what a killed process had out, and leaves URLs of other lists alone", async () => {
  const database = openSqlite(":memory:");
  const options = { name: "default", worker: "w", leaseMs: 1_000, isOwn: true };
  const named = (...names: string[]) => names.map((name) => ({ url: `https://a/${name}`, key: "a" }));
  const first = sqliteQueue(database, options);
  await first.add(named("1", "2", "3"));
  await first.begin({ again: "if-finished" });
  expect(await first.claim("a", 2)).toEqual(["https://a/1", "https://a/2"]);
  expect(await first.claim("a", 2)).toEqual(["https://a/3"]);
  await first.finish([{ ...named("1")[0], outcome: "fetched" }]);
  expect(await first.claim("a", 2)).toEqual([]);
  // Killed; the next command has another list.
  const second = sqliteQueue(database, options);
  await second.add(named("1", "3", "4"));
  await second.begin({ again: "if-finished" });
  expect(await second.counts()).toMatchObject({ total: 3, waiting: 2, fetched: 1 });
  expect(await second.claim("a", 9)).toEqual(["https://a/3", "https://a/4"]);
  database.close();
});

it("counts a URL under the key that the policy of the last run gives it", async () => {
  const database = openSqlite(":memory:");
  const options = { name: "default", worker: "w", leaseMs: 1_000, isOwn: true };
  for (const key of ["a", "a:8080"]) {
    const queue = sqliteQueue(database, options);
    await queue.add([{ url: "https://a/1", key }]);
    await queue.begin({ again: "if-finished" });
    expect(await queue.keys("", 9)).toEqual([key]);
  }
  database.close();
});

it("takes a worker for dead whose lease ends later than any lease of its own could: the machine was started again", async () => {
  const database = openSqlite(":memory:");
  const [before, after] = ["before", "after"].map((worker) =>
    sqliteQueue(database, { name: "list", worker, leaseMs: 30_000 }),
  );
  await before.add([{ url: "https://a/1", key: "a" }]);
  await before.begin({ again: false });
  await before.claim("a", 1);
  expect(await after.renew()).toBe(0);
  // The clock of the machine begins anew with each start: the end of a lease from before lies far ahead.
  database.exec("UPDATE get_workers SET until_ms = until_ms + 60000 WHERE worker = 'before'");
  expect(await after.renew()).toBe(1);
  database.close();
});

it("opens a file whose tables are of an earlier version", async () => {
  const database = openSqlite(":memory:");
  database.exec(`
    CREATE TABLE get_urls (
      id INTEGER PRIMARY KEY, list TEXT NOT NULL, url TEXT NOT NULL, key TEXT NOT NULL,
      state INTEGER NOT NULL DEFAULT 0, run INTEGER NOT NULL DEFAULT 0, worker TEXT, UNIQUE (list, url));
    CREATE TABLE get_workers (
      list TEXT NOT NULL, worker TEXT NOT NULL, until_ms INTEGER NOT NULL, PRIMARY KEY (list, worker)) WITHOUT ROWID;
    INSERT INTO get_urls (list, url, key, state) VALUES ('list', 'https://a/1', 'a', 2), ('list', 'https://a/2', 'a', 0);
    INSERT INTO get_workers VALUES ('list', 'old', 1);
  `);
  const queue = sqliteQueue(database, { name: "list", worker: "w", leaseMs: 30_000 });
  expect(await queue.begin({ again: true })).toBe(true);
  expect(await queue.claim("a", 9)).toHaveLength(2);
  expect(await queue.renew()).toBe(0);
  database.close();
});

it("asks in the next round of a folder only for what this round has not had", async () => {
  const database = openSqlite(":memory:");
  const open = () => sqliteQueue(database, { name: "default", worker: "w", leaseMs: 1_000, isOwn: true });
  const named = (...names: string[]) => names.map((name) => ({ url: `https://a/${name}`, key: "a" }));
  const finish = (queue: UrlQueue, ...names: string[]) =>
    queue.finish(named(...names).map((one) => ({ ...one, outcome: "fetched" as const })));
  const first = open();
  await first.add(named("1", "2", "3", "other"));
  await first.begin({ again: "if-finished" });
  await finish(first, "1", "2", "3", "other");
  // A new round over a part of the folder, killed after the first page.
  const second = open();
  await second.add(named("1", "2", "3"));
  expect(await second.begin({ again: true })).toBe(true);
  await finish(second, "1");
  // Another list meets it: what this round has fetched stays, what it never asked for is asked.
  const third = open();
  await third.add(named("1", "2", "other"));
  expect(await third.begin({ again: true })).toBe(true);
  expect(await third.claim("a", 9)).toEqual(["https://a/2", "https://a/other"]);
  database.close();
});

queueSuite("Redis", async () => {
  const server = await startRedis();
  const client = new Redis(server.url);
  return {
    open: async (options) => redisQueue(client, options),
    async close() {
      const keys = await client.keys("{politely:get:*");
      if (keys.length > 0) await client.del(...keys);
      client.disconnect();
      await server.stop();
    },
  };
});

it("hands out again 30,000 URLs that failed in Redis, in steps that end", async () => {
  const server = await startRedis();
  const client = new Redis(server.url);
  const list = randomBytes(6).toString("hex");
  const queue = redisQueue(client, { name: list, worker: "w", leaseMs: 60_000 });
  const size = 30_000;
  for (let from = 0; from < size; from += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, index) => ({ url: `https://a/${from + index}`, key: "a" }));
    await queue.add(batch);
    await queue.finish(batch.map((one) => ({ ...one, outcome: "failed" as const })));
  }
  await queue.begin({ again: false });
  expect(await queue.counts()).toMatchObject({ total: size, waiting: size, failed: 0 });
  await client.del(await client.keys(`{politely:get:${list}}:*`));
  client.disconnect();
  await server.stop();
});

queueSuite("PostgreSQL", async () => {
  const server = await startPostgres();
  const pool = new pg.Pool({ connectionString: server.url, max: 6 });
  pool.on("error", () => undefined);
  return {
    open: (options) => postgresQueue(pool, options),
    async close() {
      await pool.end();
      await server.stop();
    },
  };
});
