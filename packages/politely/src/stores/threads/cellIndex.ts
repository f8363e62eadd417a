import type { StoredCell } from "./recordBuffer.js";

/** What this thread knows of one cell. */
export class IndexedCell implements StoredCell {
  /** Position of the record that it is in. */
  at = 0;
  from = 0;
  bytes = 0;
  expiresUs = 0;
  /** Undefined until it is asked for. */
  value: string | undefined = undefined;
  /** The change that last replaced it. */
  replacedBy = 0;
  older: IndexedCell | undefined = undefined;
  newer: IndexedCell | undefined = undefined;

  constructor(readonly key: string) {}
}

/** Which cells there are and where, in the order in which they lie in the ring. Kept by each thread for itself. */
export class CellIndex {
  oldest: IndexedCell | undefined = undefined;
  /** Bytes of all cells in the ring, of expired ones too. */
  bytes = 0;
  private newest: IndexedCell | undefined = undefined;
  private readonly byKey = new Map<string, IndexedCell>();

  get size(): number {
    return this.byKey.size;
  }

  get(key: string): IndexedCell | undefined {
    return this.byKey.get(key);
  }

  /** Notes that the cell of this key is in the record at `at` now, the newest one. */
  put(stored: StoredCell, at: number, value?: string): void {
    let cell = this.byKey.get(stored.key);
    if (cell === undefined) {
      cell = new IndexedCell(stored.key);
      this.byKey.set(stored.key, cell);
    } else {
      this.unlink(cell);
    }
    cell.at = at;
    cell.from = stored.from;
    cell.bytes = stored.bytes;
    cell.expiresUs = stored.expiresUs;
    cell.value = value;
    this.bytes += cell.bytes;
    cell.older = this.newest;
    if (this.newest === undefined) this.oldest = cell;
    else this.newest.newer = cell;
    this.newest = cell;
  }

  remove(cell: IndexedCell): void {
    this.unlink(cell);
    this.byKey.delete(cell.key);
  }

  /** Removes the cells of records before `position`, which have been overwritten: they had expired. */
  removeBefore(position: number): void {
    while (this.oldest !== undefined && this.oldest.at < position) this.remove(this.oldest);
  }

  /** Removes what has expired. Looks at every cell. */
  removeExpired(nowUs: number): void {
    for (let cell = this.oldest; cell !== undefined; ) {
      const { newer } = cell;
      if (cell.expiresUs <= nowUs) this.remove(cell);
      cell = newer;
    }
  }

  clear(): void {
    this.byKey.clear();
    this.oldest = undefined;
    this.newest = undefined;
    this.bytes = 0;
  }

  private unlink(cell: IndexedCell): void {
    if (cell.older === undefined) this.oldest = cell.newer;
    else cell.older.newer = cell.newer;
    if (cell.newer === undefined) this.newest = cell.older;
    else cell.newer.older = cell.older;
    cell.older = undefined;
    cell.newer = undefined;
    this.bytes -= cell.bytes;
  }
}
