import { addColumn, type SqliteDatabase, type SqliteStatement } from "../sqlite.js";

/** Everything a queue in SQLite does. The numbers are those of `state` in urlQueue.ts. Lists of things are JSON arrays. */
export interface SqliteStatements {
  readonly lastRun: SqliteStatement;
  readonly add: SqliteStatement;
  readonly newByKey: SqliteStatement;
  readonly park: SqliteStatement;
  readonly retryOwn: SqliteStatement;
  readonly retryFailed: SqliteStatement;
  readonly anyLeft: SqliteStatement;
  readonly round: SqliteStatement;
  readonly openRound: SqliteStatement;
  readonly closeRound: SqliteStatement;
  readonly anyFinished: SqliteStatement;
  readonly again: SqliteStatement;
  readonly dropCounts: SqliteStatement;
  readonly recount: SqliteStatement;
  readonly keys: SqliteStatement;
  readonly next: SqliteStatement;
  readonly take: SqliteStatement;
  readonly addCounts: SqliteStatement;
  readonly openByKey: SqliteStatement;
  readonly close: SqliteStatement;
  readonly held: SqliteStatement;
  readonly release: SqliteStatement;
  readonly renew: SqliteStatement;
  readonly deadWorkers: SqliteStatement;
  readonly dropWorker: SqliteStatement;
  readonly sums: SqliteStatement;
  readonly topKeys: SqliteStatement;
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS get_urls (
    id INTEGER PRIMARY KEY, list TEXT NOT NULL, url TEXT NOT NULL, key TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0, run INTEGER NOT NULL DEFAULT 0, worker TEXT, round INTEGER NOT NULL DEFAULT 0,
    UNIQUE (list, url));
  CREATE INDEX IF NOT EXISTS get_urls_waiting ON get_urls (list, key, id) WHERE state = 0;
  CREATE INDEX IF NOT EXISTS get_urls_out ON get_urls (list, worker) WHERE state = 1;
  CREATE TABLE IF NOT EXISTS get_keys (
    list TEXT NOT NULL, key TEXT NOT NULL, total INTEGER NOT NULL, waiting INTEGER NOT NULL,
    fetched INTEGER NOT NULL, refused INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (list, key)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS get_keys_waiting ON get_keys (list, key) WHERE waiting > 0;
  CREATE TABLE IF NOT EXISTS get_workers (
    list TEXT NOT NULL, worker TEXT NOT NULL, until_ms INTEGER NOT NULL, lease_ms INTEGER NOT NULL DEFAULT 30000,
    PRIMARY KEY (list, worker)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS get_rounds (
    list TEXT PRIMARY KEY, round INTEGER NOT NULL, is_open INTEGER NOT NULL) WITHOUT ROWID;
`;

/** Columns that files of earlier versions lack. */
const ADDED = [
  ["get_urls", "round", "INTEGER NOT NULL DEFAULT 0"],
  ["get_workers", "lease_ms", "INTEGER NOT NULL DEFAULT 30000"],
] as const;

/** What a key's row is made of, counted anew. */
const COUNTED = `SELECT list, key, count(*), sum(state = 0), sum(state = 2), sum(state = 4), sum(state = 3) FROM get_urls`;
/** The round that a list is in; 0 before anybody has asked for a new one. */
const ROUND = "coalesce((SELECT round FROM get_rounds WHERE list = ?1), 0)";
const COUNTS = ["total", "waiting", "fetched", "refused", "failed"];

/** Forgets every list of a file. To be called before anything is prepared. */
export function dropLists(database: SqliteDatabase): void {
  for (const table of ["get_urls", "get_keys", "get_workers", "get_rounds"]) {
    database.exec(`DROP TABLE IF EXISTS ${table}`);
  }
}

/** Creates the tables where they are missing, and prepares what is done with them. */
export function prepareSqlite(database: SqliteDatabase): SqliteStatements {
  database.exec(TABLES);
  for (const [table, name, type] of ADDED) addColumn(database, table, { name, type });
  const field = (name: string): string => `json_extract(value, '$.${name}')`;
  const among = "IN (SELECT value FROM json_each(?))";
  const sql = {
    lastRun: "SELECT max(run) AS run FROM get_urls WHERE list = ?",
    add: `INSERT INTO get_urls (list, run, url, key, round)
      SELECT ?1, ?2, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ${ROUND} FROM json_each(?3) WHERE true
      ON CONFLICT (list, url) DO UPDATE SET run = excluded.run, key = excluded.key WHERE run <> excluded.run`,
    newByKey: `SELECT key, count(*) AS count FROM (
        SELECT DISTINCT json_extract(value, '$[0]') AS url, json_extract(value, '$[1]') AS key FROM json_each(?2)) AS given
      WHERE NOT EXISTS (SELECT 1 FROM get_urls WHERE list = ?1 AND get_urls.url = given.url) GROUP BY key`,
    park: "UPDATE get_urls SET state = 5, worker = NULL WHERE list = ? AND run <> ? AND state IN (0, 1, 3)",
    retryOwn: "UPDATE get_urls SET state = 0, worker = NULL WHERE list = ? AND run = ? AND state IN (1, 3, 5)",
    retryFailed: "UPDATE get_urls SET state = 0, worker = NULL WHERE list = ? AND state = 3",
    anyLeft: "SELECT 1 AS found FROM get_urls WHERE list = ? AND run = ? AND state IN (0, 1) LIMIT 1",
    anyFinished: "SELECT 1 AS found FROM get_urls WHERE list = ? AND run = ? AND state IN (2, 4) AND round < ? LIMIT 1",
    again: `UPDATE get_urls SET state = CASE WHEN state IN (2, 4) THEN 0 ELSE state END, round = ?3
      WHERE list = ?1 AND run = ?2 AND round < ?3`,
    round: "SELECT round, is_open FROM get_rounds WHERE list = ?",
    openRound: "INSERT OR REPLACE INTO get_rounds (list, round, is_open) VALUES (?, ?, 1)",
    closeRound: `UPDATE get_rounds SET is_open = 0 WHERE list = ?1 AND is_open = 1
      AND NOT EXISTS (SELECT 1 FROM get_urls WHERE list = ?1 AND state = 0)
      AND NOT EXISTS (SELECT 1 FROM get_urls WHERE list = ?1 AND state = 1)`,
    dropCounts: "DELETE FROM get_keys WHERE list = ?",
    recount: `INSERT INTO get_keys ${COUNTED} WHERE list = ? AND run = ? GROUP BY list, key`,
    keys: "SELECT key FROM get_keys WHERE list = ? AND waiting > 0 AND key > ? ORDER BY key LIMIT ?",
    next: "SELECT id, url FROM get_urls WHERE list = ? AND key = ? AND state = 0 AND id > ? ORDER BY id LIMIT ?",
    take: `UPDATE get_urls SET state = 1, worker = ? WHERE id ${among}`,
    addCounts: `INSERT INTO get_keys (list, key, ${COUNTS.join(", ")})
      SELECT ?1, ${["key", ...COUNTS].map(field).join(", ")} FROM json_each(?2) WHERE true
      ON CONFLICT (list, key) DO UPDATE SET ${COUNTS.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`,
    openByKey: `SELECT key, sum(state = 0) AS waiting, count(*) AS open FROM get_urls
      WHERE list = ? AND url ${among} AND state IN (0, 1) GROUP BY key`,
    close: `UPDATE get_urls SET state = ?, worker = NULL WHERE list = ? AND url ${among} AND state IN (0, 1)`,
    held: "SELECT id, key FROM get_urls WHERE list = ? AND worker = ? AND state = 1",
    release: `UPDATE get_urls SET state = 0, worker = NULL WHERE id ${among}`,
    renew: `INSERT INTO get_workers (list, worker, until_ms, lease_ms) VALUES (?1, ?2, ?3 + ?4, ?4)
      ON CONFLICT (list, worker) DO UPDATE SET until_ms = excluded.until_ms, lease_ms = excluded.lease_ms`,
    // A machine that was started again counts its time from zero: a lease that ends later than it is long is of before.
    deadWorkers: "SELECT worker FROM get_workers WHERE list = ?1 AND (until_ms < ?2 OR until_ms > ?2 + lease_ms)",
    dropWorker: "DELETE FROM get_workers WHERE list = ? AND worker = ?",
    sums: `SELECT ${COUNTS.map((name) => `sum(${name}) AS ${name}`).join(", ")} FROM get_keys WHERE list = ?`,
    topKeys: `SELECT key, ${COUNTS.join(", ")} FROM get_keys WHERE list = ?
      ORDER BY total - fetched - refused - failed DESC LIMIT ?`,
  };
  return Object.fromEntries(
    Object.entries(sql).map(([name, text]) => [name, database.prepare(text)]),
  ) as unknown as SqliteStatements;
}
