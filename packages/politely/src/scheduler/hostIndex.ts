const FNV_PRIME = 0x0100_0193;

/**
 * Which row belongs to which host, as a `Map` has it.
 *
 * Up to `mapMost` hosts it is one, since that knows the hash of a text it has seen. Beyond, a table of our own misses the processor's cache less often.
 *
 * Whoever walks through it meets each host that is there all the while exactly once, whatever comes and goes meanwhile, and comes to an end.
 * The hosts of the `Map` come in the order in which they were set, those of the table in the order of their rows.
 */
export class HostIndex implements Iterable<[string, number]> {
  #map: Map<string, number> | undefined = new Map();
  /** By row; undefined where there is none. Used beside the table only. */
  #names: (string | undefined)[] = [];
  /** Two numbers a cell: the hash of a name and its row plus one, 0 in an empty cell. A name lies in the first free cell from the one that its hash says. */
  #cells = new Int32Array(0);
  #mask = 0;
  #size = 0;
  /** Nobody outside knows which names meet in one cell. */
  readonly #seed = Math.floor(Math.random() * 2 ** 32);

  /** `mapMost` is a power of two, at least 4. A table becomes a `Map` again at a quarter of it, so that no border is crossed to and fro. */
  constructor(readonly mapMost = 1 << 15) {}

  get size(): number {
    return this.#map === undefined ? this.#size : this.#map.size;
  }

  get(name: string): number | undefined {
    const map = this.#map;
    if (map !== undefined) return map.get(name);
    const row = this.#cells[this.#find(name) + 1] - 1;
    return row < 0 ? undefined : row;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Each row has one name at most: a row that gets another must have lost the one before. */
  set(name: string, row: number): void {
    if (this.#map !== undefined) {
      this.#map.set(name, row);
      if (this.#map.size > this.mapMost) this.#toTable(this.#map);
      return;
    }
    const at = this.#find(name);
    const before = this.#cells[at + 1] - 1;
    if (before >= 0) this.#names[before] = undefined;
    else this.#size += 1;
    this.#cells[at] = this.#hash(name);
    this.#cells[at + 1] = row + 1;
    while (this.#names.length < row) this.#names.push(undefined);
    this.#names[row] = name;
    // At most three in five, so that most names lie where their hash says, or beside.
    if (5 * this.#size > 3 * this.#mask) this.#resize(2 * (this.#mask + 1));
  }

  delete(name: string): boolean {
    if (this.#map !== undefined) return this.#map.delete(name);
    const at = this.#find(name);
    const row = this.#cells[at + 1] - 1;
    if (row < 0) return false;
    this.#names[row] = undefined;
    this.#close(at);
    this.#size -= 1;
    if (4 * this.#size <= this.mapMost) this.#toMap();
    else if (8 * this.#size < this.#mask) this.#resize((this.#mask + 1) / 2);
    return true;
  }

  *[Symbol.iterator](): Generator<[string, number], void, undefined> {
    const map = this.#map;
    if (map === undefined) {
      yield* this.#rows();
      return;
    }
    let left = map.size;
    for (const entry of map) {
      if (left-- === 0) return;
      // Once there is a table, the map is what was there before.
      if (this.#map === map || this.get(entry[0]) === entry[1]) yield entry;
    }
  }

  *#rows(): Generator<[string, number], void, undefined> {
    const names = this.#names;
    const end = names.length;
    for (let row = 0; row < end; row++) {
      const name = names[row];
      if (name === undefined) continue;
      if (this.#names === names || this.get(name) === row) yield [name, row];
    }
  }

  *keys(): Generator<string, void, undefined> {
    for (const [name] of this) yield name;
  }

  *values(): Generator<number, void, undefined> {
    for (const [, row] of this) yield row;
  }

  /** Where the cell of a name begins, or the empty cell where it would be. */
  #find(name: string): number {
    const cells = this.#cells;
    const mask = this.#mask;
    const hash = this.#hash(name);
    for (let cell = hash & mask; ; cell = (cell + 1) & mask) {
      const row = cells[2 * cell + 1] - 1;
      if (row < 0 || (cells[2 * cell] === hash && this.#names[row] === name)) return 2 * cell;
    }
  }

  #hash(name: string): number {
    let hash = this.#seed | 0;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), FNV_PRIME);
    hash = Math.imul(hash ^ (hash >>> 15), 0x85eb_ca6b);
    return hash ^ (hash >>> 13);
  }

  /** Empties a cell, and moves those up that would not be found behind an empty one. */
  #close(at: number): void {
    const cells = this.#cells;
    const mask = this.#mask;
    let hole = at / 2;
    for (let cell = (hole + 1) & mask; cells[2 * cell + 1] !== 0; cell = (cell + 1) & mask) {
      const isBeyondHole = ((cell - cells[2 * cell]) & mask) >= ((cell - hole) & mask);
      if (!isBeyondHole) continue;
      cells[2 * hole] = cells[2 * cell];
      cells[2 * hole + 1] = cells[2 * cell + 1];
      hole = cell;
    }
    cells[2 * hole + 1] = 0;
  }

  #resize(count: number): void {
    const before = this.#cells;
    const cells = new Int32Array(2 * count);
    const mask = count - 1;
    for (let at = 0; at < before.length; at += 2) {
      if (before[at + 1] === 0) continue;
      let cell = before[at] & mask;
      while (cells[2 * cell + 1] !== 0) cell = (cell + 1) & mask;
      cells[2 * cell] = before[at];
      cells[2 * cell + 1] = before[at + 1];
    }
    this.#cells = cells;
    this.#mask = mask;
  }

  #toTable(map: ReadonlyMap<string, number>): void {
    this.#map = undefined;
    this.#names = [];
    this.#cells = new Int32Array(4 * this.mapMost);
    this.#mask = 2 * this.mapMost - 1;
    this.#size = 0;
    for (const [name, row] of map) this.set(name, row);
  }

  #toMap(): void {
    this.#map = new Map(this);
    this.#names = [];
    this.#cells = new Int32Array(0);
  }
}
