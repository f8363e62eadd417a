import { StoreError } from "../errors.js";
import { cellStore } from "./cellStore.js";
import type { Cells, ChangeCells } from "./cells.js";
import { checkOptionNames } from "./checkOptionNames.js";
import { type MachineTime, machineTime } from "./machineTime.js";
import { isBusy, sqliteError } from "./sqliteErrors.js";
import { type OpenHandle, SqliteFile, type SqliteJob } from "./sqliteFile.js";
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
export interface SqliteCells extends Cells {
  /** As `close` of the store. */
  close(): void;
  /** Why the last try did not get the file; undefined when it did. */
  lastError(): unknown;
}

/** So many changes share a transaction at most. Together they hold the file for a few milliseconds. */
const TOGETHER_MOST = 64;
/** Longest pause before another try at a file in use, in milliseconds. */
const PAUSE_MOST_MS = 8;

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
  return Object.assign(cellStore(cells), { close: () => cells.close(), lastError: () => cells.lastError() });
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
  checkOptionNames(options, ["table", "busyMs"], "sqliteStore");
  const { table = "politely", busyMs = 5_000 } = options;
  checkOptions(table, busyMs);
  const file = new SqliteFile(openerOf(source), table, time);
  const waiting: SqliteJob[] = [];
  let isPumping = false;
  let lastError: unknown;

  const pump = async (): Promise<void> => {
    for (let failures = 0; waiting.length > 0; ) {
      // Further calls of this turn join in, and other processes find the file free for a moment.
      await nextTurn();
      const jobs = waiting.slice(0, TOGETHER_MOST);
      try {
        const answers = file.transact(jobs);
        lastError = undefined;
        failures = 0;
        waiting.splice(0, jobs.length);
        for (const answer of answers) answer();
      } catch (error) {
        lastError = error;
        // Those that came first have waited longest.
        const gone = isBusy(error) ? jobs.filter(({ giveUpUs }) => giveUpUs <= time.nowUs()) : jobs;
        for (const { reject } of waiting.splice(0, gone.length)) reject(sqliteError(error, table));
        if (gone.length === jobs.length) file.forget();
        else await pause(++failures);
      }
    }
    isPumping = false;
  };

  return {
    name: "SQLite",
    timeline: "machine",
    change: <Answer>(keys: readonly string[], change: ChangeCells<Answer>) =>
      new Promise<Answer>((resolve, reject) => {
        const giveUpUs = time.nowUs() + busyMs * 1_000;
        waiting.push({ keys, change, resolve: (answer) => resolve(answer as Answer), reject, giveUpUs });
        if (isPumping) return;
        isPumping = true;
        void pump();
      }),
    close: () => file.close(),
    lastError: () => lastError,
  };
}

/** How to get at the handle. A path is opened when it is first needed, with what the platform has built in. */
function openerOf(source: SqliteHandle | string): () => OpenHandle {
  if (typeof source !== "string") {
    if (typeof source?.exec !== "function" || typeof source.prepare !== "function") {
      throw new TypeError("sqliteStore takes a path, or a SQLite handle with exec and prepare, as libsql makes.");
    }
    // Without its close: the handle is the caller's.
    return () => ({ exec: (sql) => source.exec(sql), prepare: (sql) => source.prepare(sql) });
  }
  const { process } = globalThis as unknown as { readonly process?: SqliteProcess };
  const builtIn = process?.getBuiltinModule?.("node:sqlite");
  if (builtIn === undefined) {
    throw new StoreError(
      `This platform has no node:sqlite to open "${source}" with. Open it with libsql and pass the handle: sqliteStore(new Database("${source}")).`,
      { isLasting: true },
    );
  }
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

interface SqliteProcess {
  getBuiltinModule?(name: "node:sqlite"): { readonly DatabaseSync: new (path: string) => OpenHandle } | undefined;
}

function checkOptions(table: string, busyMs: number): void {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,49}$/.test(table) || /^sqlite_/i.test(table)) {
    throw new RangeError(
      `table must be 1 to 50 letters, digits or _, and begin neither with a digit nor with sqlite_; got "${table}"`,
    );
  }
  if (!(busyMs >= 0 && busyMs <= 3_600_000)) {
    throw new RangeError(`busyMs must be 0 to 3,600,000; got ${busyMs}`);
  }
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
