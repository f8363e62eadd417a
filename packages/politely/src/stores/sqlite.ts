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

/** So many changes may wait at once; more are refused. */
const maxWaiting = 100_000;
/** So many changes share a transaction at most. Together they hold the file for a few milliseconds. */
const maxTogether = 64;
/** Longest pause before another try at a file in use, in milliseconds. */
const maxPauseMs = 8;

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
  const waiting: Job[] = [];
  let isPumping = false;
  let lastError: unknown;

  const pump = async (): Promise<void> => {
    for (let failures = 0; waiting.length > 0; ) {
      // Further calls of this turn join in, and other processes find the file free for a moment.
      await nextTurn();
      const jobs = waiting.slice(0, maxTogether);
      try {
        file.transact(jobs);
        failures = 0;
        lastError = undefined;
        for (const job of waiting.splice(0, jobs.length)) job.settle();
      } catch (error) {
        lastError = error;
        const goneCount = isBusy(error) ? countLate(jobs, time.nowUs()) : jobs.length;
        fail(waiting.splice(0, goneCount), sqliteError(error, table));
        if (goneCount === jobs.length) {
          file.forget();
        } else {
          failures += 1;
          await pause(failures);
        }
      }
    }
    isPumping = false;
  };

  return {
    name: "SQLite",
    timeline: "machine",
    change: (keys, change) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= maxWaiting) {
          reject(new StoreError(`${maxWaiting} changes already wait for the SQLite file. Ask for fewer at once.`));
          return;
        }
        waiting.push(jobOf(keys, change, { resolve, reject, giveUpUs: time.nowUs() + busyMs * 1_000 }));
        if (!isPumping) {
          isPumping = true;
          void pump();
        }
      }),
    close: () => file.close(),
    lastError: () => lastError,
  };
}

/** A change on its way. */
interface Job extends SqliteJob {
  /** When it stops waiting for the file, on the machine's clock. */
  readonly giveUpUs: number;
  /** Tells the caller how it went. */
  settle(): void;
}

interface JobEnd<Answer> {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
  readonly giveUpUs: number;
}

function jobOf<Answer>(keys: readonly string[], change: ChangeCells<Answer>, end: JobEnd<Answer>): Job {
  let settle = (): void => {};
  const spoil = (error: unknown): void => {
    settle = () => end.reject(error);
  };
  return {
    keys,
    giveUpUs: end.giveUpUs,
    decide(values, nowUs) {
      try {
        const { writes, answer } = change(values, nowUs);
        settle = () => end.resolve(answer);
        return writes;
      } catch (error) {
        spoil(error);
        return [];
      }
    },
    spoil,
    settle: () => settle(),
  };
}

function fail(jobs: readonly Job[], error: StoreError): void {
  for (const job of jobs) {
    job.spoil(error);
    job.settle();
  }
}

/** How many of the jobs have waited long enough. Those that came first stand first. */
function countLate(jobs: readonly Job[], machineUs: number): number {
  const firstInTime = jobs.findIndex(({ giveUpUs }) => giveUpUs > machineUs);
  return firstInTime < 0 ? jobs.length : firstInTime;
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
    // The store waits between turns of the event loop. Waiting inside SQLite would block all else.
    handle.exec("PRAGMA busy_timeout = 0");
    // Without a flush for each commit. A power cut may undo the last ones, a killed process none.
    handle.exec("PRAGMA synchronous = NORMAL");
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
  const pauseMs = 1 + Math.random() * Math.min(failures / 4, maxPauseMs - 1);
  return new Promise((resolve) => setTimeout(resolve, pauseMs));
}
