import type { Stats } from "../types.js";
import type { HostTable, KnownHost } from "./hostTable.js";
import type { Series } from "./series.js";

/** Rows of the statistics whose counts from before are remembered. */
const ROWS_MOST = 10_000;

/** What the statistics count and no event tells in full: an answer that is reported before the release has none, nor has a place that nobody follows. */
interface Counts {
  throttled: number;
  lapsed: number;
}

/**
 * Counts what only the statistics know, by their growth from look to look.
 *
 * The sum over all labels grows exactly as the statistics do. What a host did just before its statistics were folded away goes to
 * `"other"`. After `reset` they begin at zero again, and what was counted since the last look is lost.
 */
export class StatCounters<S extends Series> {
  readonly #table: HostTable<S>;
  /** Rows that had counted something before anybody watched. */
  readonly #before = new Map<string, Counts>();
  #total: Counts = { throttled: 0, lapsed: 0 };

  constructor(table: HostTable<S>) {
    this.#table = table;
  }

  /** What the statistics say now is not counted. */
  begin(rows: readonly Stats[]): void {
    this.#total = totalOf(rows);
    for (const row of rows) {
      if (this.#before.size >= ROWS_MOST) return;
      if (row.throttledRequests > 0 || row.lapsed > 0) this.#before.set(row.host, countsOf(row));
    }
  }

  /** Counts the growth since the last call. What `promoted` hosts did meanwhile was done under `"other"`. */
  update(rows: readonly Stats[], promoted: readonly KnownHost<S>[]): void {
    const total = totalOf(rows);
    const left = {
      throttled: growth(total.throttled, this.#total.throttled),
      lapsed: growth(total.lapsed, this.#total.lapsed),
    };
    this.#total = total;
    for (const row of rows) {
      const host = this.#table.labelled.get(row.host);
      if (host === undefined || row.foldedHosts !== undefined) continue;
      const now = countsOf(row);
      this.#recall(host);
      if (!promoted.includes(host)) {
        const throttled = Math.min(left.throttled, growth(now.throttled, host.seen.throttled));
        const lapsed = Math.min(left.lapsed, growth(now.lapsed, host.seen.lapsed));
        if (throttled > 0) host.series.throttled(throttled);
        if (lapsed > 0) host.series.lapsed(lapsed);
        left.throttled -= throttled;
        left.lapsed -= lapsed;
      }
      Object.assign(host.seen, now);
    }
    if (left.throttled > 0) this.#table.other.throttled(left.throttled);
    if (left.lapsed > 0) this.#table.other.lapsed(left.lapsed);
  }

  #recall({ key, seen }: KnownHost<S>): void {
    const before = this.#before.get(key);
    if (before === undefined) return;
    Object.assign(seen, before);
    this.#before.delete(key);
  }
}

function countsOf(row: Stats): Counts {
  return { throttled: row.throttledRequests, lapsed: row.lapsed };
}

function totalOf(rows: readonly Stats[]): Counts {
  const total = { throttled: 0, lapsed: 0 };
  for (const row of rows) {
    total.throttled += row.throttledRequests;
    total.lapsed += row.lapsed;
  }
  return total;
}

/** A count that has become smaller began again at zero. */
function growth(now: number, before: number): number {
  return now >= before ? now - before : now;
}
