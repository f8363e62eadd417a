import type { HostTable, KnownHost } from "./hostTable.js";
import type { Series } from "./series.js";
import type { Counts, Tally } from "./tally.js";

/** Rows of the statistics whose counts from before are remembered. */
const ROWS_MOST = 10_000;

/**
 * Counts what only the statistics know, by their growth from look to look.
 *
 * The sum over all labels grows exactly as the statistics do. What a host did just before its statistics were folded away goes to
 * `"other"`. After `reset` they begin at zero again, and what was counted since the last look is lost, of the hosts with a label excepted.
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
  begin({ total, rows }: Tally): void {
    this.#total = total;
    for (const [host, counts] of rows) {
      if (this.#before.size >= ROWS_MOST) return;
      this.#before.set(host, counts);
    }
  }

  /** Counts the growth since the last call. What `promoted` hosts did meanwhile was done under `"other"`. */
  update({ total, rows }: Tally, promoted: readonly KnownHost<S>[]): void {
    const left = {
      throttled: leftOf(total.throttled, this.#total.throttled),
      lapsed: leftOf(total.lapsed, this.#total.lapsed),
    };
    this.#total = total;
    for (const host of this.#table.labelled.values()) {
      const now = rows.get(host.key);
      if (now === undefined) continue;
      this.#recall(host);
      if (!promoted.includes(host)) {
        const throttled = Math.min(left.throttled.most, growth(now.throttled, host.seen.throttled));
        const lapsed = Math.min(left.lapsed.most, growth(now.lapsed, host.seen.lapsed));
        if (throttled > 0) host.series.throttled(throttled);
        if (lapsed > 0) host.series.lapsed(lapsed);
        take(left.throttled, throttled);
        take(left.lapsed, lapsed);
      }
      Object.assign(host.seen, now);
    }
    if (left.throttled.others > 0) this.#table.other.throttled(left.throttled.others);
    if (left.lapsed.others > 0) this.#table.other.lapsed(left.lapsed.others);
  }

  #recall({ key, seen }: KnownHost<S>): void {
    const before = this.#before.get(key);
    if (before === undefined) return;
    Object.assign(seen, before);
    this.#before.delete(key);
  }
}

/** What a look has still to count: of labelled hosts at most, and of the others if nothing more is found. */
interface Left {
  most: number;
  others: number;
}

/** A total that has become smaller was reset, wholly or for some hosts. Nobody knows what the others did meanwhile; a labelled host did no more than it says. */
function leftOf(now: number, before: number): Left {
  return now >= before ? { most: now - before, others: now - before } : { most: now, others: 0 };
}

function take(left: Left, count: number): void {
  left.most -= count;
  left.others = Math.max(0, left.others - count);
}

/** A count that has become smaller began again at zero. */
function growth(now: number, before: number): number {
  return now >= before ? now - before : now;
}
