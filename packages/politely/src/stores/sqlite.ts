import { checkNames } from "../core/checkNames.js";
import { cellStore } from "./cellStore.js";
import type { Cells, ChangeCells } from "./cells.js";
import { type Failures, failureOf, lastingError } from "./failures.js";
import { type MachineTime, machineTime } from "./machineTime.js";
import type { Store } from "./store.js";

/** The part of a SQLite statement that the store calls. It answers at once, not with a promise. */
export interface SqliteStatement {
  get(...values: (string | number)[]): unknown;
  run(...values: (string | number)[]): unknown;
}

/** The part of a SQLite handle that the store calls. Those of `libsql`, `node:sqlite`, `better-sqlite3` and `bun:sqlite` fit. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

/** How limits are kept in a SQLite file. */
export interface SqliteOptions {
  /**
   * Name of the table: letters, digits and `_`, at most 50. Default `politely`. A second table, with `_clock` at the end of its name,
   * holds the time. Both are created on first use.
   */
  readonly table?: string;
  /**
   * How long a change waits for other processes to let go of the file, in milliseconds, before it fails with `StoreError`. Default 5,000;
   * 0: it tries once.
   */
  readonly busyMs?: number;
}

/** A store in a SQLite file. */
export interface SqliteStore extends Store {
  /** Ends the store, and closes the file if it was given by its path. A handle stays open: it is yours. A second call does nothing. */
  close(): void;
}

/** Cells in a SQLite file. */
export type SqliteCells = Cells & Pick<SqliteStore, "close"> & { lastError(): unknown };

/** So many changes share a transaction at most. Together they hold the file for a few milliseconds. */
const TOGETHER_MOST = 64;
/** Longest pause before another try at a file in use, in milliseconds. */
const PAUSE_MOST_MS = 8;
/** Expired cells are looked for after so many writes, each time among twice as many cells. */
const SWEEP_EVERY = 16;

/** What went wrong, by the names of SQLite's result codes, and what SQLite or the client tells apart by the message alone. */
const FAILURES: Failures = {
  "^PERM ": "This user may not use the SQLite file. Allow it to read and write the file and its folder.",
  "^BUSY ": "The SQLite file is in use by another process. End what holds it, or raise busyMs.",
  "^LOCKED ": "The SQLite table is locked by another statement of this process. Give the store its own handle.",
  "^NOMEM ": "There is no memory left for SQLite. Give the process more.",
  "^READONLY ": "The SQLite file is read-only. Open it for writing, and allow this user to write to its folder.",
  "^IOERR ": "The SQLite file could not be read or written. Look at the disk.",
  "^CORRUPT ": "The SQLite file is damaged. Remove it, or put a copy in its place.",
  "^FULL ": "There is no room left on the disk for the SQLite file. Make room.",
  "^CANTOPEN ": "The SQLite file cannot be opened. Check that its folder exists and may be read and written.",
  "^AUTH ": "The SQLite handle does not allow what the store does. Pass one without an authorizer.",
  "^NOTADB ": "The file is no SQLite database, or it is encrypted. Name another path.",
  "not open|closed|finalized": "The SQLite handle is closed. Keep it open as long as a limiter uses it.",
  "within a transaction":
    "The SQLite handle is in the middle of a transaction of yours. Give the store a handle of its own.",
  "no such (table|column)|has no column|ON CONFLICT|view":
    "The tables {table} and {table}_clock are not as politely makes them ({message}). Remove them, or name another table.",
  "": "SQLite failed: {message}",
};
/** The others may pass. */
const LASTING =
  /^(PERM|READONLY|CORRUPT|CANTOPEN|AUTH|NOTADB) |not open|closed|finalized|within a transaction|no such (table|column)|has no column|ON CONFLICT|view/i;
/** The names of result codes by their numbers. */
const CODES = ", , , PERM, , BUSY, LOCKED, NOMEM, READONLY, , IOERR, CORRUPT, , FULL, CANTOPEN".split(", ");
CODES[23] = "AUTH";
CODES[26] = "NOTADB";

/**
 * Keeps limits in a table of a SQLite file, shared by all processes of one machine that open the file.
 *
 * `source` is a handle that you open and close, or a path, which needs a platform with `node:sqlite`. Nothing is opened or created before the
 * first use. A killed process loses nothing that was granted. Time is the monotonic clock of the machine: wall clocks do not matter, and after a
 * restart of the machine time goes on where it was last seen, so that every debt counts in full again.
 *
 * Throws `StoreError` for a path where there is no `node:sqlite`, and `TypeError` or `RangeError` for a wrong argument.
 */
export function sqliteStore(source: SqliteHandle | string, options: SqliteOptions = {}): SqliteStore {
  const cells = sqliteCells(source, options);
  return { ...cellStore(cells), close: () => cells.close(), lastError: () => cells.lastError() };
}

/**
 * Keeps strings in a SQLite file, and changes several in one transaction. `sqliteStore` is made of it.
 *
 * Changes that are asked for in one turn of the event loop share a transaction. `time` is a clock that all processes with this file read alike.
 */
export function sqliteCells(
  source: SqliteHandle | string,
  options: SqliteOptions = {},
  time: MachineTime = machineTime(),
): SqliteCells {
  checkNames(options, ["table", "busyMs"], "options of sqliteStore");
  const { table = "politely", busyMs = 5_000 } = options;
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,49}$/.test(table) || /^sqlite_/i.test(table))
    throw new RangeError(
      `table must be 1 to 50 letters, digits or _, and begin neither with a digit nor with sqlite_; got "${table}"`,
    );
  if (!(busyMs >= 0 && busyMs <= 3_600_000)) throw new RangeError(`busyMs must be 0 to 3,600,000; got ${busyMs}`);
  return new SqliteFile(openerOf(source), table, busyMs, time);
}

/** `"BUSY"` for all of SQLITE_BUSY and its variants. Clients say it with a name or a number, each under a key of its own. */
function nameOf(error: unknown): string {
  const { code, errcode, rawCode, errno } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const name = typeof code === "string" ? /^SQLITE_([A-Z]+)/.exec(code)?.[1] : undefined;
  const number = [errcode, rawCode, errno].find((value) => typeof value === "number") ?? 0;
  // The low byte is the kind; the rest tells variants apart.
  return name ?? CODES[number & 0xff] ?? "";
}

/** What is used of the platform. */
interface Platform {
  getBuiltinModule?(name: "node:sqlite"): { readonly DatabaseSync: new (path: string) => OpenHandle } | undefined;
  getBuiltinModule?(name: "node:fs"): {
    statSync(path: string, options: { readonly throwIfNoEntry: false }): { dev: number; ino: number } | undefined;
  };
}

function platform(): Platform | undefined {
  return (globalThis as unknown as { readonly process?: Platform }).process;
}

/** How to get at the handle. A path is opened when it is first needed, with what the platform has built in. */
function openerOf(source: SqliteHandle | string): () => OpenHandle {
  if (typeof source !== "string") {
    if (typeof source?.exec !== "function" || typeof source.prepare !== "function")
      throw new TypeError("sqliteStore takes a path, or a SQLite handle with exec and prepare, as libsql makes.");
    // Without its close: the handle is the caller's.
    return () => ({ exec: (sql) => source.exec(sql), prepare: (sql) => source.prepare(sql) });
  }
  const builtIn = platform()?.getBuiltinModule?.("node:sqlite");
  if (builtIn === undefined)
    throw lastingError(
      `This platform has no node:sqlite to open "${source}" with. Open it with libsql and pass the handle: sqliteStore(new Database("${source}")).`,
    );
  return () => {
    const handle = new builtIn.DatabaseSync(source);
    try {
      // The store waits between turns of the event loop. Waiting inside SQLite would block all else. Without a flush for each commit, a power cut may undo
      // the last ones, a killed process none. Where another process makes the file at this moment, it is opened anew.
      handle.exec("PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL");
    } catch (error) {
      handle.close?.();
      throw error;
    }
    return handle;
  };
}

function nextTurn(): Promise<void> {
  const timers = globalThis as unknown as { setImmediate(fn: () => void): unknown };
  return new Promise((resolve) => timers.setImmediate(resolve));
}

/** Waits 1 ms at first, and then a random time that is longer the more often the file was found in use. */
function pause(failures: number): Promise<void> {
  const pauseMs = 1 + Math.random() * Math.min(failures / 4, PAUSE_MOST_MS - 1);
  return new Promise((resolve) => setTimeout(resolve, pauseMs));
}

/** A handle, with `close` if it is ours to close. */
interface OpenHandle extends SqliteHandle {
  close?(): unknown;
}

/** One change of some cells. */
interface Job {
  readonly keys: readonly string[];
  readonly change: ChangeCells<unknown>;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  /** When it stops waiting for the file, on the machine's clock. */
  readonly giveUpUs: number;
}

/** The tables of one file: cells, and the clock. */
class SqliteFile implements SqliteCells {
  readonly name = "SQLite";
  readonly timeline = "machine";
  readonly #waiting: Job[] = [];
  #isPumping = false;
  #lastError: unknown;
  /** Undefined before the first use, and when it is closed. */
  #handle: OpenHandle | undefined;
  #statements: Statements | undefined;
  /** Whether whoever opens the path now gets another file, or none. */
  #isMoved = (): boolean => false;
  #isClosed = false;
  /** The latest time this process has seen. */
  #lastUs = 1;
  /** The file has carried our boot id since this process opened it. */
  #isOurs = false;
  #unsweptWrites = 0;
  #sweptKey = "";

  constructor(
    private readonly open: () => OpenHandle,
    private readonly table: string,
    private readonly busyMs: number,
    private readonly time: MachineTime,
  ) {}

  change<Answer>(keys: readonly string[], change: ChangeCells<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const giveUpUs = this.time.nowUs() + this.busyMs * 1_000;
      this.#waiting.push({ keys, change, resolve, reject, giveUpUs });
      if (!this.#isPumping) void this.#pump();
    });
  }

  /** Why the last try did not get the file; undefined when it did. */
  lastError(): unknown {
    return this.#lastError;
  }

  close(): void {
    this.#isClosed = true;
    this.#letGo();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    for (let failures = 0; this.#waiting.length > 0; ) {
      // Further calls of this turn join in, and other processes find the file free for a moment.
      await nextTurn();
      const jobs = this.#waiting.slice(0, TOGETHER_MOST);
      try {
        const answers = this.#transact(jobs);
        this.#lastError = undefined;
        failures = 0;
        this.#waiting.splice(0, jobs.length);
        for (const answer of answers) answer();
      } catch (error) {
        if (this.#failed(jobs, error)) await pause(++failures);
      }
    }
    this.#isPumping = false;
  }

  /** Rejects those that have waited for long enough, or all where waiting is of no use. Says whether some go on. */
  #failed(jobs: readonly Job[], error: unknown): boolean {
    this.#lastError = error;
    const name = nameOf(error);
    const message = error instanceof Error ? error.message : String(error);
    const said = `${name} ${message}`;
    const failure = failureOf(error, FAILURES, { said, message, table: this.table, isLasting: LASTING.test(said) });
    // Those that came first have waited longest.
    const isBusy = name === "BUSY" || name === "LOCKED";
    const gone = isBusy ? jobs.filter(({ giveUpUs }) => giveUpUs <= this.time.nowUs()) : jobs;
    for (const { reject } of this.#waiting.splice(0, gone.length)) reject(failure);
    if (gone.length < jobs.length) return true;
    // Everything is prepared anew: the tables may be gone.
    this.#statements = undefined;
    return false;
  }

  /** Carries out all jobs in one transaction, and gives what answers each. Throws what the client throws, or a `StoreError`; then nothing has changed. */
  #transact(jobs: readonly Job[]): (() => void)[] {
    if (this.#isClosed) throw lastingError("The SQLite store is closed. Close it after the limiters that use it.");
    if (this.#isMoved()) this.#leave();
    this.#handle ??= this.open();
    const handle = this.#handle;
    if (this.#statements === undefined) {
      this.#statements = prepare(handle, this.table);
      this.#isMoved = watch(handle);
    }
    const statements = this.#statements;
    // IMMEDIATE takes the lock before the first read, so that two processes never both see the old state.
    // Not a prepared statement: with libsql those outlive the handle, and would go on after it was closed.
    handle.exec("BEGIN IMMEDIATE");
    try {
      const answers = jobs.map((job) => this.#carryOut(job, statements));
      this.#sweep(statements);
      handle.exec("COMMIT");
      return answers;
    } catch (error) {
      try {
        handle.exec("ROLLBACK");
      } catch {
        // The failure has ended the transaction already. That failure is what counts.
      }
      throw error;
    }
  }

  /** Another file, or none, is where this one was: others do not see what is written here. */
  #leave(): void {
    if (this.#handle?.close === undefined)
      throw lastingError(
        "The SQLite file was deleted, moved or replaced while it was open. Open it anew: others do not see what is written here.",
      );
    this.#letGo();
    this.#isOurs = false;
  }

  #letGo(): void {
    const handle = this.#handle;
    this.#statements = undefined;
    this.#handle = undefined;
    this.#isMoved = () => false;
    handle?.close?.();
  }

  #carryOut({ keys, change, resolve, reject }: Job, statements: Statements): () => void {
    const rows = keys.map((key) => fieldsOf(statements.select.get(key)));
    const foreign = rows.findIndex(isForeign);
    if (foreign !== -1) {
      const words = `The cell "${keys[foreign]}" in the table ${this.table} was not written by politely. Remove it, or name another table.`;
      return () => reject(lastingError(words));
    }
    const nowUs = this.#readTime(rows, statements);
    const values = rows.map(({ value, expires_us }) => (Number(expires_us) > nowUs ? (value as string) : undefined));
    let changed: ReturnType<typeof change>;
    try {
      changed = change(values, nowUs);
    } catch (error) {
      return () => reject(error);
    }
    for (const { index, value, ttlUs } of changed.writes) {
      statements.upsert.run(keys[index], value, nowUs, Math.min(nowUs + Math.ceil(ttlUs), Number.MAX_SAFE_INTEGER));
      this.#unsweptWrites += 1;
    }
    return () => resolve(changed.answer as never);
  }

  /**
   * The store's time: the machine's clock plus an offset that is kept in the file.
   *
   * The offset changes when the machine's clock has started again. Without a boot id that shows only in a clock that is behind what was
   * written, so each process compares the two once. A clock can fall behind later too, when a virtual machine is set back to an earlier moment.
   */
  #readTime(rows: readonly Fields[], statements: Statements): number {
    const { boot, offset_us } = rows[0];
    const { bootId } = this.time;
    if (this.#isOurs && boot !== null && boot !== bootId)
      throw lastingError(
        "The SQLite file is in use on another machine as well. This store is for one machine: take Redis or PostgreSQL for several.",
      );
    const machineUs = this.time.nowUs();
    const nowUs = machineUs + Number(offset_us);
    const isSameRun = boot === bootId && (this.#isOurs || bootId !== "");
    const isBehind = nowUs < this.#lastUs || rows.some(({ written_us }) => Number(written_us) > nowUs);
    if (isSameRun && !isBehind) this.#lastUs = nowUs;
    else {
      const latestUs = Number(fieldsOf(statements.latest.get()).latest ?? machineUs);
      this.#lastUs = Math.max(latestUs, this.#lastUs, boot === bootId ? nowUs : 0);
      statements.setClock.run(bootId, this.#lastUs - machineUs);
    }
    this.#isOurs = true;
    return this.#lastUs;
  }

  /** Removes expired cells: walks through the table, a few cells at a time, and starts over at its end. */
  #sweep(statements: Statements): void {
    if (this.#unsweptWrites < SWEEP_EVERY) return;
    this.#unsweptWrites = 0;
    const { until } = fieldsOf(statements.selectNext.get(this.#sweptKey));
    if (typeof until === "string") statements.removeExpired.run(this.#sweptKey, until, this.#lastUs);
    this.#sweptKey = typeof until === "string" ? until : "";
  }
}

type Statements = ReturnType<typeof prepare>;

/** Creates the tables where they are missing, and prepares what is done with them. */
function prepare(handle: SqliteHandle, table: string) {
  const clock = `${table}_clock`;
  checkHandle(handle);
  // With a write-ahead log a commit is cheap. Where it cannot be had, all works as well, only slower.
  handle.exec("PRAGMA journal_mode = WAL");
  handle.exec(`CREATE TABLE IF NOT EXISTS ${table} (key TEXT PRIMARY KEY, value TEXT NOT NULL,
    written_us INTEGER NOT NULL, expires_us INTEGER NOT NULL) WITHOUT ROWID`);
  handle.exec(`CREATE TABLE IF NOT EXISTS ${clock} (id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL, offset_us INTEGER NOT NULL)`);
  const statement = (sql: string): SqliteStatement => handle.prepare(sql);
  return {
    // Cell and clock in one: in some clients a statement costs more than what it does. One row in any case.
    select: statement(`SELECT value, written_us, expires_us, boot, offset_us
      FROM (SELECT 1) LEFT JOIN ${table} ON key = ? LEFT JOIN ${clock} ON id = 1`),
    upsert: statement(`INSERT INTO ${table} (key, value, written_us, expires_us) VALUES (?, ?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value,
        written_us = excluded.written_us, expires_us = excluded.expires_us`),
    setClock: statement(`INSERT OR REPLACE INTO ${clock} (id, boot, offset_us) VALUES (1, ?, ?)`),
    latest: statement(`SELECT max(written_us) AS latest FROM ${table}`),
    selectNext: statement(`SELECT max(key) AS until
      FROM (SELECT key FROM ${table} WHERE key > ? ORDER BY key LIMIT ${2 * SWEEP_EVERY})`),
    removeExpired: statement(`DELETE FROM ${table} WHERE key > ? AND key <= ? AND expires_us <= ?`),
  };
}

/** The store needs answers at once, and rows as objects. */
function checkHandle(handle: SqliteHandle): void {
  const answer: unknown = handle.exec("SELECT 1");
  if (answer instanceof Promise) answer.catch(() => undefined);
  if (answer instanceof Promise || fieldsOf(handle.prepare("SELECT 1 AS one").get()).one === undefined)
    throw lastingError(
      "The SQLite handle answers with promises, or gives rows as arrays. Pass one that answers at once and gives rows as objects, as libsql and node:sqlite do.",
    );
}

/** Watches the file of a handle, from now on. One in memory never moves, nor does any where the platform cannot look. */
function watch(handle: SqliteHandle): () => boolean {
  const { file } = fieldsOf(handle.prepare("PRAGMA database_list").get());
  const files = platform()?.getBuiltinModule?.("node:fs");
  const look = (): string | undefined => {
    try {
      const found = files?.statSync(String(file), { throwIfNoEntry: false });
      return found === undefined ? "" : `${found.dev} ${found.ino}`;
    } catch {
      return undefined;
    }
  };
  if (files === undefined || typeof file !== "string" || file === "") return () => false;
  const first = look();
  return () => first !== undefined && ![first, undefined].includes(look());
}

type Fields = Readonly<Record<string, unknown>>;

function isForeign({ value, written_us, expires_us }: Fields): boolean {
  const isOurs = typeof value === "string" && [written_us, expires_us].every((us) => Number.isSafeInteger(Number(us)));
  return value !== null && !isOurs;
}

/** The columns of a row; none when there is no row. Numbers may come as `bigint`, if the handle is set so. */
function fieldsOf(row: unknown): Fields {
  return typeof row === "object" && row !== null ? (row as Fields) : {};
}
