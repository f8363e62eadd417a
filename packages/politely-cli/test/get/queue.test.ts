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
