import { closeSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Redis } from "ioredis";
import type { Pool } from "pg";
import type { Store } from "politely";
import { dynamodbStore } from "politely/dynamodb";
import { postgresStore } from "politely/postgres";
import { redisStore } from "politely/redis";
import { sqliteStore } from "politely/sqlite";
import { UsageError, WorkError } from "../errors.js";
import { openSqlite, whenFree } from "../get/sqlite.js";

/** A store that was opened, with the client behind it for those who keep more there. */
export type OpenedStore = {
  readonly store: Store;
  /** Closes what was opened; the limiter must be closed before. */
  close(): Promise<void>;
} & (
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "redis"; readonly client: Redis }
  | { readonly kind: "postgres"; readonly pool: Pool }
  | { readonly kind: "dynamodb"; readonly table: string }
);

/** Where a store may be. */
export type StoreKind = OpenedStore["kind"];

/** How a store is opened. */
export interface OpenStoreOptions {
  /** Paths are relative to this. */
  readonly cwd: string;
  /** What the address may name. */
  readonly kinds: readonly StoreKind[];
  /** The option that gave the address, for messages. Default `"--share"`. */
  readonly option?: string | undefined;
}

const CONNECT_MS = 10_000;
const CLOSE_MS = 2_000;
/** A server that is connected and has not answered a question by then is away. */
const ANSWER_MS = 15_000;
/** `host:port`, maybe with a name before and a path behind. */
const WITHOUT_SCHEME = /^(?:[^/\\]*@)?(?:\[[\da-f:]+\]|[\w.-]+):(\d{1,5})(?:[/?].*)?$/i;
/** A scheme, and not both slashes. */
const WITHOUT_SLASHES = /^(rediss?|postgres(?:ql)?):\/?(?!\/)/i;

/**
 * Opens the store that an address names: `redis://…`, `rediss://…`, `postgres://…`, `postgresql://…`,
 * `dynamodb:TABLE[?region=…&endpoint=…]`, or a SQLite file relative to `cwd`. Tables that are missing are made.
 *
 * Throws `UsageError` for an address that is empty or none of `kinds`, and for a `host:port` or `redis:host`, which would be strange names for a file. Throws what the client
 * throws when the server cannot be reached. A question that is not answered within 15 s fails.
 */
export async function openStore(address: string, options: OpenStoreOptions): Promise<OpenedStore> {
  const { cwd, kinds, option = "--share" } = options;
  const kind = kindOf(address);
  if (kind === undefined || !kinds.includes(kind)) {
    throw new UsageError(`${option} takes ${formsOf(kinds)}; got ${shownAddress(address) || '""'}`);
  }
  const meant = meantBy(address);
  if (meant !== undefined) {
    const shown = shownAddress(address);
    throw new UsageError(
      `${option} takes ${formsOf(kinds)}; got ${shown}. Write ${shownAddress(meant)}, or ./${shown} for a file of that name.`,
    );
  }
  switch (kind) {
    case "sqlite":
      return openFile(resolve(cwd, address));
    case "redis":
      return openRedis(address);
    case "postgres":
      return openPostgres(address);
    case "dynamodb":
      return openDynamodb(address);
  }
}

/** The address of a server that was meant by what would be a strange name for a file. */
function meantBy(address: string): string | undefined {
  const [start, scheme] = WITHOUT_SLASHES.exec(address) ?? [];
  if (start !== undefined) return `${scheme.toLowerCase()}://${address.slice(start.length)}`;
  const [, port] = WITHOUT_SCHEME.exec(address) ?? [];
  return port === undefined ? undefined : `${port === "5432" ? "postgres" : "redis"}://${address}`;
}

/** Says that an address cannot be used, and why, in one line and without its password. A `UsageError` stays as it is. */
export function storeFailure(option: string, address: string, error: unknown): Error {
  if (error instanceof UsageError) return error;
  const problem = error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
  return new WorkError(`${option} ${shownAddress(address)} cannot be used: ${problem}`);
}

/** An address without what may be secret: all before its last `@`, and its query. Where nobody can tell the two apart, only its scheme is left. */
export function shownAddress(address: string): string {
  const [scheme] = /^[a-z][a-z\d+.-]*:\/\//i.exec(address) ?? [""];
  const rest = address.slice(scheme.length);
  // A file may be called what it likes, unless it looks like a name with a password.
  if (scheme === "" && !/^[^/\\]*:.*@/.test(rest) && !/^dynamodb:/i.test(rest)) return address;
  const at = rest.lastIndexOf("@");
  const query = rest.search(/[?#]/);
  if (query >= 0 && query < at) return `${scheme}…`;
  const place = rest.slice(at + 1, query < 0 ? undefined : query);
  return `${scheme}${at < 0 ? "" : "…@"}${place}${query < 0 ? "" : "?…"}`;
}

function kindOf(address: string): StoreKind | undefined {
  if (address === "") return undefined;
  if (/^dynamodb:/i.test(address)) return "dynamodb";
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
  if (scheme === undefined) return "sqlite";
  if (scheme === "redis" || scheme === "rediss") return "redis";
  return scheme === "postgres" || scheme === "postgresql" ? "postgres" : undefined;
}

const FORMS: Readonly<Record<StoreKind, string>> = {
  redis: "redis://…",
  postgres: "postgres://…",
  dynamodb: "dynamodb:TABLE",
  sqlite: "a file",
};

function formsOf(kinds: readonly StoreKind[]): string {
  const forms = kinds.map((kind) => FORMS[kind]);
  return forms.length === 1 ? forms[0] : `${forms.slice(0, -1).join(", ")} or ${forms.at(-1)}`;
}

async function openFile(path: string): Promise<OpenedStore> {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new WorkError(`${path} is a folder; name a file in it`);
  }
  const database = await whenFree(() => openSqlite(path)).catch((error: unknown) => {
    // What the system says is clearer than what SQLite makes of it. Nobody here has the file open, so no lock of it is lost.
    closeSync(openSync(path, "a"));
    throw error;
  });
  const store = sqliteStore(database);
  return {
    kind: "sqlite",
    path,
    store,
    async close() {
      store.close();
      database.close();
    },
  };
}

async function openRedis(address: string): Promise<OpenedStore> {
  const { Redis } = await import("ioredis");
  const client = new Redis(address, {
    lazyConnect: true,
    connectTimeout: CONNECT_MS,
    commandTimeout: ANSWER_MS,
    maxRetriesPerRequest: 1,
  });
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
  const close = async (): Promise<void> => {
    // A server that is silent would not hang up either, and the process would wait for it.
    const stream = client.stream as { destroy(): unknown } | null | undefined;
    client.disconnect();
    stream?.destroy();
  };
  return { kind: "redis", client, store: redisStore(client), close };
}

async function openPostgres(address: string): Promise<OpenedStore> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({
    connectionString: address,
    max: 6,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
  });
  // A connection that breaks while nobody uses it would end the process otherwise.
  pool.on("error", () => undefined);
  const close = closerOf(pool);
  try {
    const store = postgresStore(pool);
    await store.createTable();
    return { kind: "postgres", pool, store, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Closes a pool, within two seconds: connections to a server that is silent are broken off then. */
function closerOf(pool: Pool): () => Promise<void> {
  const clients = new Set<unknown>();
  pool.on("connect", (client) => clients.add(client));
  pool.on("remove", (client) => clients.delete(client));
  return async () => {
    const breakOff = (): void => {
      for (const client of clients) {
        (client as { connection?: { stream?: { destroy(): unknown } } }).connection?.stream?.destroy();
      }
    };
    const timer = setTimeout(breakOff, CLOSE_MS);
    try {
      await pool.end();
    } finally {
      clearTimeout(timer);
    }
  };
}

async function openDynamodb(address: string): Promise<OpenedStore> {
  const [, table = "", query = ""] = /^dynamodb:([^?]*)\??(.*)$/i.exec(address) ?? [];
  if (!/^[\w.:/-]{3,1024}$/.test(table)) {
    throw new UsageError(`--share dynamodb: needs the name of a table, dynamodb:politely say; got "${table}"`);
  }
  const settings = new URLSearchParams(query);
  const unknown = [...settings.keys()].find((name) => name !== "region" && name !== "endpoint");
  if (unknown !== undefined) {
    throw new UsageError(`--share dynamodb:… knows region and endpoint; got "${unknown}"`);
  }
  const [region, endpoint] = [settings.get("region"), settings.get("endpoint")];
  const { DynamoDB } = await import("@aws-sdk/client-dynamodb");
  const client = new DynamoDB({
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
  });
  try {
    const store = dynamodbStore(client, { table });
    await store.createTable();
    return { kind: "dynamodb", table, store, close: async () => client.destroy() };
  } catch (error) {
    client.destroy();
    throw error;
  }
}
