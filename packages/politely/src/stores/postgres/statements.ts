import type { Statement } from "./client.js";

/** The statements for one table. */
export interface Statements {
  /** `$1` names. One row for each that exists, or one row of nulls: name, version, value, expiry, and the server's time. */
  readonly read: Statement;
  /** The same, and nobody else can change the rows until the transaction ends. The latest of the times is after the last lock. */
  readonly readLocked: Statement;
  /** `$1` names. Makes a row without a value for each that has none. Gives name and version of those it made. */
  readonly make: Statement;
  /**
   * `$1` names, `$2` expected versions, `$3` numbers of parts, `$4` values (null: to be left as it is), `$5` expiries, `$6` deadlines. Writes the parts of
   * which all rows have the expected versions, nobody else has locked one, and the deadline has not passed. Gives the numbers of those it wrote.
   */
  readonly swap: Statement;
  /** Removes up to `sweepLimit` rows that have expired. Gives one row for each. */
  readonly sweep: Statement;
}

/** How many rows `sweep` removes at most. */
export const sweepLimit = 500;

// The expiry in the index is rounded up to ten minutes, so that most updates do not touch the index, and PostgreSQL can write the new row beside the old one.
const sweepStepUs = 600_000_000;

/** Keeps our queues apart from advisory locks of others. */
const queueClass = 1_886_351_468;

/** Microseconds since 1970. Unlike now(), it moves within a transaction. */
const clockUs = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/** The same at the begin of the statement. An index can be searched for what is earlier, which it cannot for a time that moves. */
const beginUs = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";
const names = "$1::text::text[]";

/** Builds the statements for `table`, a quoted name. Those that lock rows fail when they have to wait longer than `lockMs` for one. */
export function statementsFor(table: string, lockMs: number): Statements {
  // The setting ends with the transaction. As a subquery it is made before the first row is touched.
  const patientNames = `(SELECT ${names} FROM set_config('lock_timeout', '${lockMs}', true))`;
  return {
    read: statement(`
SELECT t.key, t.version::text, t.value, t.expires_us::text, ${clockUs}::text
FROM (SELECT 1) AS once LEFT JOIN ${table} AS t ON t.key = ANY (${names})`),

    // Sorted, so that two transactions never wait for each other. In a query with FOR UPDATE the columns are worked out before the lock
    // is there, hence the clock outside.
    readLocked: statement(`
WITH held AS MATERIALIZED (
  SELECT key, version, value, expires_us FROM ${table} WHERE key = ANY (${patientNames}::text[])
  ORDER BY key FOR NO KEY UPDATE
)
SELECT held.key, held.version::text, held.value, held.expires_us::text, ${clockUs}::text
FROM (SELECT 1) AS once LEFT JOIN held ON true`),

    make: statement(`
INSERT INTO ${table} (key, value, version, expires_us, sweep_us)
SELECT key, '', txid_current(), 0, ${sweepAt(clockUs)} FROM unnest(${patientNames}) AS given (key) ORDER BY key
ON CONFLICT (key) DO NOTHING
RETURNING key, version::text`),

    // A row that somebody has locked is about to change, so there is nothing to wait for. The number of the transaction is a version that
    // no row ever had before, a removed one included.
    swap: statement(`
WITH given AS MATERIALIZED (
  SELECT * FROM unnest(${names}, $2::text::bigint[], $3::text::int[], $4::text::text[], $5::text::bigint[], $6::text::bigint[])
    AS g (key, version, part, value, expires_us, until_us)
), held AS MATERIALIZED (
  SELECT key, version FROM ${table} WHERE key = ANY (${names}) FOR NO KEY UPDATE SKIP LOCKED
), fit AS MATERIALIZED (
  SELECT part FROM given LEFT JOIN held USING (key, version) GROUP BY part
  HAVING count(held.key) = count(*) AND ${clockUs} < min(until_us)
), put AS (
  UPDATE ${table} AS t
  SET value = given.value, version = txid_current(), expires_us = given.expires_us, sweep_us = ${sweepAt("given.expires_us")}
  FROM given WHERE t.key = given.key AND given.value IS NOT NULL AND given.part IN (SELECT part FROM fit)
)
SELECT part::text FROM fit`),

    sweep: statement(`
DELETE FROM ${table} WHERE key IN (
  SELECT key FROM ${table} WHERE sweep_us < ${beginUs} ORDER BY sweep_us LIMIT ${sweepLimit} FOR UPDATE SKIP LOCKED
)
RETURNING ''`),
  };
}

/**
 * What begins a transaction that reads locked rows. Whoever wants the same rows queues up here, since PostgreSQL hands such a lock from one to the next, while those
 * who wait for a row are all woken whenever it changes. The rows need not all be named: the queue is for order, the locks on the rows for safety.
 *
 * One who holds locks may be silent for `idleMs` at most: a paused process must not stop the others.
 */
export function openingFor(
  table: string,
  rowNames: readonly string[],
  limits: { lockMs: number; idleMs: number },
): string {
  // Sorted, so that two transactions never wait for each other.
  const queues = [...new Set(rowNames.map((name) => hash(`${table} ${name}`) | 0))].sort((a, b) => a - b);
  return [
    `SET LOCAL lock_timeout = ${limits.lockMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${limits.idleMs}`,
    ...queues.map((queue) => `SELECT pg_advisory_xact_lock(${queueClass}, ${queue})`),
  ].join("; ");
}

/** The statements that create `table`, and leave one that exists as it is. `index` is the name of its index. All are one transaction when sent together. */
export function creatingText(table: string, index: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${table} (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL,
  version bigint NOT NULL,
  expires_us bigint NOT NULL,
  sweep_us bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} (sweep_us);
`.trimStart();
}

function sweepAt(expiresUs: string): string {
  return `(${expiresUs} / ${sweepStepUs} + 1) * ${sweepStepUs}`;
}

function statement(text: string): Statement {
  return { name: `politely_${hash(text).toString(36)}`, text: text.trim() };
}

/** 32 bits of FNV-1a. */
function hash(text: string): number {
  let bits = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    bits = Math.imul(bits ^ text.charCodeAt(index), 0x01000193);
  }
  return bits >>> 0;
}
