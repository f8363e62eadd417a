import { inTransaction, type SqliteDatabase, whenFree } from "../sqlite.js";
import { countsOf, noCounts } from "./rowCounts.js";
import { prepareSqlite, type SqliteStatements } from "./sqliteStatements.js";
import type {
  BeginOptions,
  FinishedUrl,
  KeyCounts,
  QueueCounts,
  QueuedUrl,
  QueueOptions,
  RenewOptions,
  UrlQueue,
} from "./urlQueue.js";
import { state } from "./urlQueue.js";

/** How a queue in a SQLite file is opened. */
export interface SqliteQueueOptions extends QueueOptions {
  /**
   * Nobody else uses the file. Then the list is what was added since it was opened: what else is in the file stays there and is
   * neither handed out nor counted. Default false: the list is everything that was ever added under its name.
   */
  readonly isOwn?: boolean;
}

/** Keeps a list in tables of a SQLite file, for the processes of one machine. The caller opens and closes `database`. */
export function sqliteQueue(database: SqliteDatabase, options: SqliteQueueOptions): UrlQueue {
  return new SqliteQueue(database, options);
}

class SqliteQueue implements UrlQueue {
  readonly #sql: SqliteStatements;
  readonly #list: string;
  readonly #worker: string;
  readonly #leaseMs: number;
  readonly #isOwn: boolean;
  /** Which opening this is, of a file of our own. */
  #run = 0;
  /** Of a file of our own: what is out, by key. Only keys that have something out. */
  readonly #claimed = new Map<string, { lastId: number; out: number }>();

  constructor(
    readonly database: SqliteDatabase,
    { name, worker, leaseMs, isOwn = false }: SqliteQueueOptions,
  ) {
    this.#list = name;
    this.#worker = worker;
    this.#leaseMs = leaseMs;
    this.#isOwn = isOwn;
    this.#sql = prepareSqlite(database);
    if (!isOwn) return;
    const { run } = this.#sql.lastRun.get(name) as { readonly run: number | null };
    this.#run = (run ?? 0) + 1;
  }

  add(urls: readonly QueuedUrl[]): Promise<void> {
    const rows = JSON.stringify(urls.map(({ url, key }) => [url, key]));
    return this.#change(() => {
      this.#sql.closeRound.run(this.#list);
      // In a file of our own everything is counted when the list is complete.
      const added = this.#isOwn ? [] : (this.#sql.newByKey.all(this.#list, rows) as NewRow[]);
      this.#sql.add.run(this.#list, this.#run, rows);
      const changes = added.map(({ key, count }) => ({ ...noCounts(key), total: count, waiting: count }));
      if (changes.length > 0) this.#sql.addCounts.run(this.#list, JSON.stringify(changes));
    });
  }

  begin({ again }: BeginOptions): Promise<boolean> {
    return this.#change(() => {
      const sql = this.#sql;
      sql.closeRound.run(this.#list);
      if (this.#isOwn) {
        sql.park.run(this.#list, this.#run);
        sql.retryOwn.run(this.#list, this.#run);
      } else {
        sql.retryFailed.run(this.#list);
      }
      const isLeft = sql.anyLeft.get(this.#list, this.#run) !== undefined;
      const isNewRound = (again === true || (again === "if-finished" && !isLeft)) && this.#again(again === true);
      sql.dropCounts.run(this.#list);
      sql.recount.run(this.#list, this.#run);
      return isNewRound;
    });
  }

  keys(after: string, count: number): Promise<readonly string[]> {
    return whenFree(() => this.#sql.keys.all(this.#list, after, count).map((row) => (row as QueuedUrl).key));
  }

  claim(key: string, count: number): Promise<readonly string[]> {
    if (this.#isOwn) return whenFree(() => this.#claimOwn(key, count));
    return this.#change(() => {
      const rows = this.#sql.next.all(this.#list, key, 0, count) as IdRow[];
      if (rows.length === 0) return [];
      this.#sql.renew.run(this.#list, this.#worker, machineMs(), this.#leaseMs);
      this.#sql.take.run(this.#worker, JSON.stringify(rows.map(({ id }) => id)));
      this.#sql.addCounts.run(this.#list, JSON.stringify([{ ...noCounts(key), waiting: -rows.length }]));
      return rows.map(({ url }) => url);
    });
  }

  finish(urls: readonly FinishedUrl[]): Promise<void> {
    return this.#change(() => {
      for (const outcome of ["fetched", "refused", "failed"] as const) {
        const some = urls.filter((each) => each.outcome === outcome);
        if (some.length > 0) this.#move(some, { to: state[outcome], counted: outcome });
      }
    });
  }

  renew({ takesOver = true }: RenewOptions = {}): Promise<number> {
    return this.#change(() => {
      const nowMs = machineMs();
      this.#sql.renew.run(this.#list, this.#worker, nowMs, this.#leaseMs);
      if (!takesOver) return 0;
      const dead = this.#sql.deadWorkers.all(this.#list, nowMs);
      let count = 0;
      for (const row of dead) {
        const { worker } = row as { readonly worker: string };
        count += this.#leave(worker);
      }
      return count;
    });
  }

  counts(): Promise<QueueCounts> {
    return whenFree(() => countsOf(this.#sql.sums.get(this.#list)));
  }

  countsByKey(count: number): Promise<readonly KeyCounts[]> {
    return whenFree(() => this.#sql.topKeys.all(this.#list, count).map((row) => countsOf(row)));
  }

  close(): Promise<void> {
    this.#claimed.clear();
    return this.#change(() => {
      this.#leave(this.#worker);
    });
  }

  /** Lets everything wait that is finished and not of the round: the next one, or with `canJoin` the one that is going on. True when something was. */
  #again(canJoin: boolean): boolean {
    const { round, is_open } = (this.#sql.round.get(this.#list) ?? { round: 0, is_open: 0 }) as RoundRow;
    const next = canJoin && is_open === 1 ? round : round + 1;
    const isAny = this.#sql.anyFinished.get(this.#list, this.#run, next) !== undefined;
    if (!isAny && !canJoin) return false;
    this.#sql.again.run(this.#list, this.#run, next);
    this.#sql.openRound.run(this.#list, next);
    return isAny;
  }

  /** Nobody else takes from the list, so it need not be written down who has what. */
  #claimOwn(key: string, count: number): readonly string[] {
    const claimed = this.#claimed.get(key) ?? { lastId: 0, out: 0 };
    const rows = this.#sql.next.all(this.#list, key, claimed.lastId, count) as IdRow[];
    if (rows.length === 0) return [];
    claimed.lastId = rows[rows.length - 1].id;
    claimed.out += rows.length;
    this.#claimed.set(key, claimed);
    return rows.map(({ url }) => url);
  }

  /** Once all that was claimed of a key is finished, the list itself says what is left. */
  #settle(key: string, count: number): void {
    const claimed = this.#claimed.get(key);
    if (claimed === undefined) return;
    claimed.out -= count;
    if (claimed.out <= 0) this.#claimed.delete(key);
  }

  #change<Result>(work: () => Result): Promise<Result> {
    return whenFree(() => inTransaction(this.database, work));
  }

  /** Moves URLs that wait or are out into a final state, and keeps the counts. */
  #move(urls: readonly QueuedUrl[], { to, counted }: { to: number; counted: "fetched" | "refused" | "failed" }): void {
    const rows = JSON.stringify(urls.map(({ url }) => url));
    const found = this.#sql.openByKey.all(this.#list, rows) as OpenRow[];
    for (const { key, open } of found) this.#settle(key, open);
    const changes = found.map(({ key, waiting, open }) => ({
      ...noCounts(key),
      waiting: -waiting,
      [counted]: open,
    }));
    this.#sql.close.run(to, this.#list, rows);
    this.#sql.addCounts.run(this.#list, JSON.stringify(changes));
  }

  #leave(worker: string): number {
    const held = this.#sql.held.all(this.#list, worker);
    this.#wait(held);
    this.#sql.dropWorker.run(this.#list, worker);
    return held.length;
  }

  /** Lets rows wait that are out. */
  #wait(rows: readonly unknown[]): void {
    if (rows.length === 0) return;
    const held = rows as readonly { readonly id: number; readonly key: string }[];
    this.#sql.release.run(JSON.stringify(held.map(({ id }) => id)));
    const counts = new Map<string, number>();
    for (const { key } of held) counts.set(key, (counts.get(key) ?? 0) + 1);
    const changes = [...counts].map(([key, waiting]) => ({ ...noCounts(key), waiting }));
    this.#sql.addCounts.run(this.#list, JSON.stringify(changes));
  }
}

interface IdRow {
  readonly id: number;
  readonly url: string;
}

interface RoundRow {
  readonly round: number;
  readonly is_open: number;
}

interface NewRow {
  readonly key: string;
  readonly count: number;
}

interface OpenRow {
  readonly key: string;
  readonly waiting: number;
  readonly open: number;
}

/** Time that all processes of this machine read alike, whatever is done to its wall clock. */
function machineMs(): number {
  return Math.round(Number(process.hrtime.bigint() / 1_000_000n));
}
