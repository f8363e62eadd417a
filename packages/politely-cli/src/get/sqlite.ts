import { createRequire } from "node:module";

/** A prepared statement. Every call runs to its end at once. */
export interface SqliteStatement {
  all(...values: (string | number | null)[]): unknown[];
  get(...values: (string | number | null)[]): unknown;
  run(...values: (string | number | null)[]): unknown;
}

/** An open SQLite file. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

type DatabaseClass = new (path: string) => SqliteDatabase;

/**
 * Opens or creates a SQLite file in WAL mode, with what Node has built in, else with `libsql`.
 *
 * A killed process loses nothing it has committed; a power cut may undo the last commits. Nobody waits inside SQLite for others
 * who use the file: see `whenFree`. Throws what SQLite throws.
 */
export function openSqlite(path: string, options: { readonly isExclusive?: boolean } = {}): SqliteDatabase {
  const Database = builtIn() ?? packaged();
  const database = new Database(path);
  try {
    database.exec("PRAGMA busy_timeout = 0");
    // Before WAL, so that the lock is taken for as long as the file is open.
    if (options.isExclusive === true) database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA temp_store = FILE");
    // Each checkpoint waits for the disk. 16 MB of log at most lie between two.
    database.exec("PRAGMA wal_autocheckpoint = 4000");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Closes a file that was opened as exclusive. With `libsql` a handle lives on until its last statement is collected, so the lock is
 * given up first; that takes leaving WAL mode.
 */
export function closeExclusive(database: SqliteDatabase): void {
  try {
    database.exec("PRAGMA journal_mode = DELETE");
    database.exec("PRAGMA locking_mode = NORMAL");
    database.exec("SELECT count(*) FROM sqlite_master");
  } catch {
    // A disk that is full, say. The lock goes with the process then.
  }
  database.close();
}

/** Whether SQLite says that somebody else uses the file. */
export function isBusy(error: unknown): boolean {
  const { code, errcode, message } = Object(error) as { code?: unknown; errcode?: unknown; message?: unknown };
  if (typeof code === "string" && /^SQLITE_(BUSY|LOCKED)/.test(code)) return true;
  if (typeof errcode === "number" && ((errcode & 0xff) === 5 || (errcode & 0xff) === 6)) return true;
  return typeof message === "string" && /database (table )?is locked/i.test(message);
}

/** Whether SQLite says that the file is broken, or was never one of its own. */
export function isDamaged(error: unknown): boolean {
  return error instanceof Error && /file is not a database|database disk image is malformed/.test(error.message);
}

/** Runs `work` in a transaction. It must not wait for anything. Nothing has changed when it throws. */
export function inTransaction<Result>(database: SqliteDatabase, work: () => Result): Result {
  // IMMEDIATE takes the lock before the first read, so that two processes never both see the old state.
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      database.exec("ROLLBACK");
    } catch {
      // The failure has ended the transaction already. That failure is what counts.
    }
    throw error;
  }
}

/** Adds a column that tables of earlier versions lack. */
export function addColumn(database: SqliteDatabase, table: string, { name, type }: SqliteColumn): void {
  const isThere = (): boolean =>
    database.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, name) !== undefined;
  if (isThere()) return;
  inTransaction(database, () => {
    // Another process may have added it since.
    if (!isThere()) database.exec(`ALTER TABLE ${table} ADD COLUMN ${name} ${type}`);
  });
}

/** A column of a table. */
export interface SqliteColumn {
  readonly name: string;
  readonly type: string;
}

const GIVE_UP_MS = 15_000;
const LONGEST_PAUSE_MS = 10;

/** Does `work`, and does it again while another process uses the file, for at most 15 s. Rejects with what it throws last. */
export async function whenFree<Result>(work: () => Result): Promise<Result> {
  const giveUpMs = performance.now() + GIVE_UP_MS;
  for (let failures = 0; ; failures++) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpMs) throw error;
      const pauseMs = 1 + Math.random() * Math.min(failures, LONGEST_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

/** `node:sqlite`, from Node 22.13 on. Its warning that it is experimental is nothing the user of a command can act on. */
function builtIn(): DatabaseClass | undefined {
  const before: unknown = Reflect.get(process, "emitWarning");
  process.emitWarning = () => undefined;
  try {
    const platform = process as unknown as { getBuiltinModule?(name: string): unknown };
    const module = platform.getBuiltinModule?.("node:sqlite") as { readonly DatabaseSync: DatabaseClass } | undefined;
    return module?.DatabaseSync;
  } finally {
    Reflect.set(process, "emitWarning", before);
  }
}

function packaged(): DatabaseClass {
  return createRequire(import.meta.url)("libsql") as DatabaseClass;
}
