import type { Stats } from "../types.js";

/** What the statistics count and no event tells in full: an answer that is reported before the release has none, nor has a place that nobody follows. */
export interface Counts {
  throttled: number;
  lapsed: number;
}

/**
 * Adds up the rows of one look, which may take a while.
 *
 * A host that is folded away after its row was told is in the row of the folded ones too, so its own is taken out again. The total then lies between that
 * of the statistics at the beginning and at the end of the look, and never falls from look to look.
 */
export class Tally {
  readonly total: Counts = { throttled: 0, lapsed: 0 };
  /** Rows of hosts: those that count something, and those asked for with `isKept`. */
  readonly rows = new Map<string, Counts>();

  add(row: Stats, isKept: boolean): void {
    const counts = countsOf(row);
    // A host that was reset begins again.
    this.folded(row.host);
    this.#count(counts, 1);
    if (row.foldedHosts === undefined && (isKept || counts.throttled > 0 || counts.lapsed > 0)) {
      this.rows.set(row.host, counts);
    }
  }

  /** A host was folded away, and will be in the row of the folded ones. */
  folded(host: string): void {
    const counts = this.rows.get(host);
    if (counts === undefined) return;
    this.rows.delete(host);
    this.#count(counts, -1);
  }

  #count({ throttled, lapsed }: Counts, times: 1 | -1): void {
    this.total.throttled += times * throttled;
    this.total.lapsed += times * lapsed;
  }
}

function countsOf({ throttledRequests, lapsed }: Stats): Counts {
  return { throttled: throttledRequests, lapsed };
}
