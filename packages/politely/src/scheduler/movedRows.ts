/** A row that has become part of another, and since when: only permits from before may lead to it. */
export interface MovedRow {
  readonly into: number;
  readonly joinedUs: number;
}

/** Rows that have become part of others: where what is said about them counts by now. One step always leads to the end. */
export class MovedRows {
  readonly #rows = new Map<number, MovedRow>();
  readonly #parts = new Map<number, Set<number>>();

  /** The row at which a start from `slot` counts by now. */
  rowOf(slot: number): number {
    return this.#rows.size === 0 ? slot : (this.#rows.get(slot)?.into ?? slot);
  }

  /** Makes a row, and all that have become part of it before, part of another. */
  add(from: number, row: MovedRow): void {
    const parts = this.#parts.get(row.into) ?? new Set();
    for (const part of this.partsOf(from)) {
      parts.add(part);
      this.#rows.set(part, { into: row.into, joinedUs: this.#rows.get(part)?.joinedUs ?? row.joinedUs });
    }
    this.#parts.delete(from);
    this.#parts.set(row.into, parts.add(from));
    this.#rows.set(from, row);
  }

  /** The rows that have become part of this one. */
  partsOf(into: number): readonly number[] {
    const parts = this.#parts.size === 0 ? undefined : this.#parts.get(into);
    return parts === undefined ? NONE : [...parts];
  }

  /** All of them, as a list that stays the same when some go. */
  all(): [number, MovedRow][] {
    return [...this.#rows];
  }

  delete(from: number): void {
    const into = this.rowOf(from);
    if (!this.#rows.delete(from)) return;
    const parts = this.#parts.get(into);
    parts?.delete(from);
    if (parts?.size === 0) this.#parts.delete(into);
  }
}

const NONE: readonly number[] = [];
