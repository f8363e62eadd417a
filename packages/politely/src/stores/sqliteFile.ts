import { StoreError } from "../errors.js";
import type { ChangeCells } from "./cells.js";
import type { MachineTime } from "./machineTime.js";
import type { SqliteHandle, SqliteStatement } from "./sqlite.js";

/** Expired cells are looked for after so many writes, each time among twice as many cells. */
const SWEEP_EVERY = 16;
const SWEPT_TOGETHER = 2 * SWEEP_EVERY;

/** A handle, with `close` if it is ours to close. */
export interface OpenHandle extends SqliteHandle {
  close?(): unknown;
}

/** One change of some cells. */
export interface SqliteJob {
  readonly keys: readonly string[];
  readonly change: ChangeCells<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** When it stops waiting for the file, on the machine's clock. */
  readonly giveUpUs: number;
}

/** The tables of one file: cells, and the clock. Every method runs to its end without a pause. */
export class SqliteFile {
  private handle: OpenHandle | undefined;
  private statements: Statements | undefined;
  /** Whether whoever opens the path now gets another file, or none. */
  private isMoved: (() => boolean) | undefined;
  private isClosed = false;
  /** The latest time this process has seen. */
  private lastUs = 1;
  /** The file has carried our boot id since this process opened it. */
  private isOurs = false;
  private unsweptWrites = 0;
  private sweptKey = "";

  constructor(
    private readonly open: () => OpenHandle,
    private readonly table: string,
    private readonly time: MachineTime,
  ) {}

  /** Carries out all jobs in one transaction, and gives what answers each. Throws what the client throws, or a `StoreError`; then nothing has changed. */
  transact(jobs: readonly SqliteJob[]): (() => void)[] {
    if (this.isClosed) throw lasting("The SQLite store is closed. Close it after the limiters that use it.");
    if (this.isMoved?.() === true) this.leave();
    this.handle ??= this.open();
    this.statements ??= prepare(this.handle, this.table);
    this.isMoved ??= watch(this.handle);
    const { handle, statements } = this;
    // IMMEDIATE takes the lock before the first read, so that two processes never both see the old state.
    // Not a prepared statement: with libsql those outlive the handle, and would go on after it was closed.
    handle.exec("BEGIN IMMEDIATE");
    try {
      const answers = jobs.map((job) => this.carryOut(job, statements));
      this.sweep(statements);
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

  /** Prepares everything anew at the next transaction: the tables may be gone. */
  forget(): void {
    this.statements = undefined;
  }

  close(): void {
    this.isClosed = true;
    this.letGo();
  }

  /** Another file, or none, is where this one was: others do not see what is written here. */
  private leave(): void {
    if (this.handle?.close === undefined)
      throw lasting(
        "The SQLite file was deleted, moved or replaced while it was open. Open it anew: others do not see what is written here.",
      );
    this.letGo();
    this.isOurs = false;
  }

  private letGo(): void {
    const { handle } = this;
    this.statements = undefined;
    this.handle = undefined;
    this.isMoved = undefined;
    handle?.close?.();
  }

  private carryOut({ keys, change, resolve, reject }: SqliteJob, statements: Statements): () => void {
    const rows = keys.map((key) => rowOf(statements.select.get(key)));
    const foreign = keys.find((_, index) => rows[index]?.isForeign === true);
    if (foreign !== undefined) {
      const words = `The cell "${foreign}" in the table ${this.table} was not written by politely. Remove it, or name another table.`;
      return () => reject(lasting(words));
    }
    const nowUs = this.readTime(rows, statements);
    const values = rows.map((row) => (row !== undefined && row.expiresUs > nowUs ? row.value : undefined));
    let changed: ReturnType<typeof change>;
    try {
      changed = change(values, nowUs);
    } catch (error) {
      return () => reject(error);
    }
    for (const { index, value, ttlUs } of changed.writes) {
      statements.upsert.run(keys[index], value, nowUs, Math.min(nowUs + Math.ceil(ttlUs), Number.MAX_SAFE_INTEGER));
      this.unsweptWrites += 1;
    }
    return () => resolve(changed.answer);
  }

  /**
   * The store's time: the machine's clock plus an offset that is kept in the file.
   *
   * The offset changes when the machine's clock has started again. Without a boot id that shows only in a clock that is behind what was
   * written, so each process compares the two once. A clock can fall behind later too, when a virtual machine is set back to an earlier moment.
   */
  private readTime(rows: readonly (Row | undefined)[], statements: Statements): number {
    const { boot, offsetUs } = rows.find((row) => row !== undefined) ?? clockOf(statements.selectClock.get());
    const { bootId } = this.time;
    if (this.isOurs && boot !== undefined && boot !== bootId)
      throw lasting(
        "The SQLite file is in use on another machine as well. This store is for one machine: take Redis or PostgreSQL for several.",
      );
    const machineUs = this.time.nowUs();
    const nowUs = machineUs + offsetUs;
    const isSameRun = boot === bootId && (this.isOurs || bootId !== "");
    const isBehind = nowUs < this.lastUs || rows.some((row) => row !== undefined && row.writtenUs > nowUs);
    if (isSameRun && !isBehind) this.lastUs = nowUs;
    else {
      const latestUs = Number(fieldsOf(statements.latest.get()).latest ?? machineUs);
      this.lastUs = Math.max(latestUs, this.lastUs, boot === bootId ? nowUs : 0);
      statements.setClock.run(bootId, this.lastUs - machineUs);
    }
    this.isOurs = true;
    return this.lastUs;
  }

  /** Removes expired cells: walks through the table, a few cells at a time, and starts over at its end. */
  private sweep(statements: Statements): void {
    if (this.unsweptWrites < SWEEP_EVERY) return;
    this.unsweptWrites = 0;
    const { until } = fieldsOf(statements.selectNext.get(this.sweptKey));
    if (typeof until === "string") statements.removeExpired.run(this.sweptKey, until, this.lastUs);
    this.sweptKey = typeof until === "string" ? until : "";
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
    // Cell and clock in one: in some clients a statement costs more than what it does.
    select: statement(`SELECT value, written_us, expires_us, boot, offset_us
      FROM ${table} LEFT JOIN ${clock} ON id = 1 WHERE key = ?`),
    upsert: statement(`INSERT INTO ${table} (key, value, written_us, expires_us) VALUES (?, ?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value,
        written_us = excluded.written_us, expires_us = excluded.expires_us`),
    selectClock: statement(`SELECT boot, offset_us FROM ${clock} WHERE id = 1`),
    setClock: statement(`INSERT OR REPLACE INTO ${clock} (id, boot, offset_us) VALUES (1, ?, ?)`),
    latest: statement(`SELECT max(written_us) AS latest FROM ${table}`),
    selectNext: statement(`SELECT max(key) AS until
      FROM (SELECT key FROM ${table} WHERE key > ? ORDER BY key LIMIT ${SWEPT_TOGETHER})`),
    removeExpired: statement(`DELETE FROM ${table} WHERE key > ? AND key <= ? AND expires_us <= ?`),
  };
}

/** The store needs answers at once, and rows as objects. */
function checkHandle(handle: SqliteHandle): void {
  const answer: unknown = handle.exec("SELECT 1");
  if (answer instanceof Promise) answer.catch(() => undefined);
  if (answer instanceof Promise || fieldsOf(handle.prepare("SELECT 1 AS one").get()).one === undefined)
    throw lasting(
      "The SQLite handle answers with promises, or gives rows as arrays. Pass one that answers at once and gives rows as objects, as libsql and node:sqlite do.",
    );
}

/** The part of `node:fs` that is called. */
interface Files {
  statSync(path: string, options: { readonly throwIfNoEntry: false }): { dev: number; ino: number } | undefined;
}

/** Watches the file of a handle, from now on. One in memory never moves, nor does any where the platform cannot look. */
function watch(handle: SqliteHandle): () => boolean {
  const { file } = fieldsOf(handle.prepare("PRAGMA database_list").get());
  const { process } = globalThis as unknown as { readonly process?: { getBuiltinModule?(name: "node:fs"): Files } };
  const files = process?.getBuiltinModule?.("node:fs");
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

interface Clock {
  /** Undefined in a new file. */
  readonly boot: string | undefined;
  readonly offsetUs: number;
}

interface Row extends Clock {
  readonly value: string;
  readonly writtenUs: number;
  readonly expiresUs: number;
  readonly isForeign: boolean;
}

/** Undefined when there is no row: some clients say `undefined`, some `null`. */
function rowOf(found: unknown): Row | undefined {
  if (found === undefined || found === null) return undefined;
  const { value, written_us, expires_us } = fieldsOf(found);
  const [writtenUs, expiresUs] = [Number(written_us), Number(expires_us)];
  const isForeign = typeof value !== "string" || !Number.isSafeInteger(writtenUs) || !Number.isSafeInteger(expiresUs);
  return { ...clockOf(found), value: String(value), writtenUs, expiresUs, isForeign };
}

function clockOf(found: unknown): Clock {
  const { boot, offset_us } = fieldsOf(found);
  return { boot: typeof boot === "string" ? boot : undefined, offsetUs: Number(offset_us ?? 0) };
}

/** The columns of a row; none when there is no row. Numbers may come as `bigint`, if the handle is set so. */
function fieldsOf(row: unknown): Readonly<Record<string, unknown>> {
  return typeof row === "object" && row !== null ? (row as Record<string, unknown>) : {};
}

function lasting(words: string): StoreError {
  return new StoreError(words, { isLasting: true });
}
