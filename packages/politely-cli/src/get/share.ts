import { resolve } from "node:path";
import type { Store } from "politely";
import { postgresStore } from "politely/postgres";
import { redisStore } from "politely/redis";
import { sqliteStore } from "politely/sqlite";
import { UsageError, WorkError } from "../errors.js";
import { patientQueue } from "./queue/patientQueue.js";
import { postgresQueue } from "./queue/postgresQueue.js";
import { redisQueue } from "./queue/redisQueue.js";
import { sqliteQueue } from "./queue/sqliteQueue.js";
import type { QueueOptions, UrlQueue } from "./queue/urlQueue.js";
import { openSqlite, whenFree } from "./sqlite.js";

/** A list and the limits that go with it, opened. */
export interface Shared {
  readonly queue: UrlQueue;
  /** For the limiter. */
  readonly store: Store;
  /** Closes what was opened; the queue and the limiter must be closed before. */
  close(): Promise<void>;
}

/** How a shared list is opened. */
export interface ShareOptions extends QueueOptions {
  readonly cwd: string;
  readonly log: (line: string) => void;
}

const GIVE_UP_MS = 60_000;
const CONNECT_MS = 10_000;

/**
 * Opens what `--share` names: `redis://…`, `rediss://…`, `postgres://…`, `postgresql://…`, or a SQLite file.
 *
 * Throws `UsageError` for another scheme and `WorkError` when the server cannot be reached.
 */
export async function openShare(address: string, options: ShareOptions): Promise<Shared> {
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
  try {
    const shared = await open(scheme, address, options);
    return { ...shared, queue: patientQueue(shared.queue, { giveUpMs: GIVE_UP_MS, log: options.log }) };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const problem =
      error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
    throw new WorkError(`--share ${shown(address)} cannot be used: ${problem}`);
  }
}

function open(scheme: string | undefined, address: string, options: ShareOptions): Promise<Shared> {
  switch (scheme) {
    case undefined:
      return openFile(resolve(options.cwd, address), options);
    case "redis":
    case "rediss":
      return openRedis(address, options);
    case "postgres":
    case "postgresql":
      return openPostgres(address, options);
    default:
      throw new UsageError(`--share takes redis://…, postgres://… or a file; got ${shown(address)}`);
  }
}

async function openFile(path: string, options: ShareOptions): Promise<Shared> {
  const database = await whenFree(() => openSqlite(path));
  const limits = await whenFree(() => openSqlite(path));
  const queue = await whenFree(() => sqliteQueue(database, options));
  const store = sqliteStore(limits);
  return {
    queue,
    store,
    async close() {
      store.close();
      limits.close();
      database.close();
    },
  };
}

async function openRedis(address: string, options: ShareOptions): Promise<Shared> {
  const { Redis } = await import("ioredis");
  const client = new Redis(address, { lazyConnect: true, connectTimeout: CONNECT_MS, maxRetriesPerRequest: 1 });
  // What goes wrong comes out of the calls; without a listener it would be printed too.
  let last: unknown;
  client.on("error", (error) => {
    last = error;
  });
  try {
    await client.connect();
  } catch (error) {
    client.disconnect();
    throw last ?? error;
  }
  return {
    queue: redisQueue(client, options),
    store: redisStore(client),
    close: async () => client.disconnect(),
  };
}

async function openPostgres(address: string, options: ShareOptions): Promise<Shared> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: address, max: 6, connectionTimeoutMillis: CONNECT_MS });
  // A connection that breaks while nobody uses it would end the process otherwise.
  pool.on("error", () => undefined);
  try {
    const queue = await postgresQueue(pool, options);
    const store = postgresStore(pool);
    await store.createTable();
    return { queue, store, close: () => pool.end() };
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** An address without its password. */
function shown(address: string): string {
  return address.replace(/\/\/[^@/]*@/, "//…@");
}
