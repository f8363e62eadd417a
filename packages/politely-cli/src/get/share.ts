import type { Store } from "politely";
import { type OpenedStore, openStore, storeFailure } from "../stores/openStore.js";
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
  /** Once it is aborted, the store has two seconds left to answer. */
  readonly stopped?: AbortSignal;
}

const GIVE_UP_MS = 60_000;

/**
 * Opens what `--share` names: `redis://…`, `rediss://…`, `postgres://…`, `postgresql://…`, or a SQLite file.
 *
 * Throws `UsageError` for another scheme and `WorkError` when the server cannot be reached.
 */
export async function openShare(address: string, options: ShareOptions): Promise<Shared> {
  try {
    const opened = await openStore(address, { cwd: options.cwd, kinds: ["redis", "postgres", "sqlite"] });
    const shared = await withQueue(opened, options);
    const { log, stopped } = options;
    const patience = { giveUpMs: GIVE_UP_MS, log, ...(stopped === undefined ? {} : { stopped }) };
    return { ...shared, queue: patientQueue(shared.queue, patience) };
  } catch (error) {
    throw storeFailure("--share", address, error);
  }
}

/** Puts the list beside the limits, into the same store. */
async function withQueue(opened: OpenedStore, options: ShareOptions): Promise<Shared> {
  const { store } = opened;
  try {
    switch (opened.kind) {
      case "sqlite": {
        const database = await whenFree(() => openSqlite(opened.path));
        const queue = await whenFree(() => sqliteQueue(database, options));
        const close = async (): Promise<void> => {
          await opened.close();
          database.close();
        };
        return { queue, store, close };
      }
      case "redis":
        return { queue: redisQueue(opened.client, options), store, close: () => opened.close() };
      case "postgres":
        return { queue: await postgresQueue(opened.pool, options), store, close: () => opened.close() };
      case "dynamodb":
        throw new Error("A list is never kept in DynamoDB: openStore was not asked for it.");
    }
  } catch (error) {
    await opened.close();
    throw error;
  }
}
