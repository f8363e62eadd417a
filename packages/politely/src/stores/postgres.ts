import { checkNames } from "../core/checkNames.js";
import { cellStore } from "./cellStore.js";
import type { Cells, ChangeCells } from "./cells.js";
import { type Connection, connectionOf, type PgClient, type PostgresJs } from "./postgres/client.js";
import { postgresError } from "./postgres/errors.js";
import { CHANNEL, CHANNEL_MOST, creatingText, PostgresPlace, statementsFor } from "./postgres/rows.js";
import type { Store } from "./store.js";
import { SwapCells } from "./swapCells.js";

/** How limits are kept in PostgreSQL. */
export interface PostgresOptions {
  /** Name of the table: letters, digits and `_`, at most 50, with a schema and a dot before it where needed. Case counts. Default `politely`. */
  readonly table?: string;
  /** A change is carried out within this time, or fails with `StoreError`. In milliseconds, from 100 to 600,000. Default 1,400: less than a limiter waits before it asks again, on another connection. */
  readonly timeoutMs?: number;
  /** Statements are prepared once for each connection. Default true; false for a connection pooler that cannot pass that on. */
  readonly prepare?: boolean;
}

/** A store in PostgreSQL. */
export interface PostgresStore extends Store {
  /** Creates the table and its index, or leaves them as they are. Any number of processes may do it at once. */
  createTable(): Promise<void>;
}

/** Cells in PostgreSQL. */
export interface PostgresCells extends Cells {
  /** What is sent to the processes that listen has arrived. */
  isHearing(): boolean;
  /** As `createTable` of the store. */
  createTable(): Promise<void>;
}

const defaultTable = "politely";
/** So long after it began to listen a process sends itself something, to see whether that arrives. */
const TRIAL_MS = 250;
/** Any number, so long as all versions of the library take the same. */
const creatingLock = 7_654_853_389;

/**
 * Keeps limits in a table of PostgreSQL, shared by all processes that connect to the database.
 *
 * `client` is a `Pool` or `Client` of `pg`, or what `postgres()` returns; you open and close it. The table must exist: see `createTable`. Time is the clock of
 * the server. A grant takes one round trip where nobody else has changed its keys since this process last did, else two; what is asked for at the same time shares them.
 *
 * Throws `TypeError` or `RangeError` for a wrong argument. Nothing is sent before the first use.
 */
export function postgresStore(client: PgClient | PostgresJs, options: PostgresOptions = {}): PostgresStore {
  const cells = postgresCells(client, options);
  const store = cellStore(cells);
  return {
    ...store,
    createTable: () => cells.createTable(),
    // Where nothing is heard, as through some poolers, who waits looks by itself.
    transact: (keys, operation) =>
      store.transact(
        keys,
        "isTold" in operation ? { ...operation, isTold: operation.isTold && cells.isHearing() } : operation,
      ),
  };
}

/** Gives the SQL that creates the table, for those who keep their schema in files. Throws `TypeError` for a wrong name. */
export function postgresTableSql(table: string = defaultTable): string {
  const { quoted, index } = quotedNames(table);
  return creatingText(quoted, index);
}

/** Keeps strings in a table of PostgreSQL, and changes several in one step. `postgresStore` is made of it. */
export function postgresCells(client: PgClient | PostgresJs, options: PostgresOptions = {}): PostgresCells {
  checkNames(options, ["table", "timeoutMs", "prepare"], "options of postgresStore");
  const { table = defaultTable, timeoutMs = 1_400, prepare = true } = options;
  if (!(Number.isInteger(timeoutMs) && timeoutMs >= 100 && timeoutMs <= 600_000)) {
    throw new RangeError(`timeoutMs must be a whole number from 100 to 600,000; got ${timeoutMs}`);
  }
  const creating = postgresTableSql(table);
  const connection = connectionOf(client, prepare, timeoutMs);
  const explain = (error: unknown) => postgresError(error, table, creating);
  const statements = statementsFor(quotedNames(table).quoted, Math.ceil(timeoutMs * 0.8));
  const rows = new SwapCells(new PostgresPlace(connection, statements, timeoutMs, explain));
  const ear = earOf(connection);

  return {
    name: "PostgreSQL",
    timeline: "epoch",
    isContended: true,
    ...ear,
    change: <Answer>(keys: readonly string[], change: ChangeCells<Answer>) =>
      rows.change(keys, change) as Promise<Answer>,
    async createTable() {
      try {
        // CREATE TABLE IF NOT EXISTS fails when two do it at the same moment.
        await connection.script(
          `SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock(${creatingLock}); ${creating}`,
        );
      } catch (error) {
        throw explain(error);
      }
    },
  };
}

/** Quotes what was checked, so that no other part of a statement can be in it. */
function quotedNames(table: string): { readonly quoted: string; readonly index: string } {
  const parts = /^(?:([A-Za-z_]\w{0,49})\.)?([A-Za-z_]\w{0,49})$/.exec(table);
  if (parts === null) {
    throw new TypeError(
      `table must be a name of letters, digits and _, at most 50, with or without a schema and a dot before it; got "${table}"`,
    );
  }
  const [, schema, name] = parts;
  return { quoted: schema === undefined ? `"${name}"` : `"${schema}"."${name}"`, index: `"${name}_sweep"` };
}

/** How a process hears whose turn has come, and whether that arrives: not through some poolers. What it hears is sent along with each change. */
function earOf(connection: Connection): Pick<PostgresCells, "bell" | "isHearing"> {
  let isHearing = false;
  if (connection.listen === undefined) return { isHearing: () => false };
  const hear = (process: string, onWake: (asker: string) => void): (() => void) => {
    const channel = (CHANNEL + process).slice(0, CHANNEL_MOST);
    const end = connection.listen?.(channel, (asker) => {
      isHearing = true;
      if (asker !== "") onWake(asker);
    });
    const trial = setTimeout(() => void connection.script(`NOTIFY "${channel}"`).catch(() => undefined), TRIAL_MS);
    (trial as { unref?(): void }).unref?.();
    return () => {
      clearTimeout(trial);
      isHearing = false;
      end?.();
    };
  };
  return { isHearing: () => isHearing, bell: { ring: () => undefined, listen: hear } };
}
