/** All remembered values together have at most this many characters, whatever their number. */
const CHARACTERS_MOST = 16_000_000;

/**
 * The cells of a place as this process last saw them, by name. They may have changed since.
 *
 * Beyond `countMost` cells, or 16 million characters, those that were set the longest time ago are forgotten.
 */
export class RememberedCells<Cell extends { readonly value: string }> {
  readonly #cells = new Map<string, Cell>();
  #characters = 0;

  constructor(private readonly countMost: number) {}

  /** Undefined: not seen lately, or there was none. */
  get(name: string): Cell | undefined {
    return this.#cells.get(name);
  }

  /** Remembers a cell, or with undefined forgets it. */
  set(name: string, cell: Cell | undefined): void {
    this.#forget(name);
    if (cell === undefined) return;
    this.#cells.set(name, cell);
    this.#characters += cell.value.length;
    for (const [oldest] of this.#cells) {
      if (this.#cells.size <= this.countMost && this.#characters <= CHARACTERS_MOST) break;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#characters -= this.#cells.get(name)?.value.length ?? 0;
    this.#cells.delete(name);
  }
}
