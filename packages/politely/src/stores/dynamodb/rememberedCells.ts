import type { StoredCell } from "./item.js";

/** All remembered values together have at most this many characters, whatever their number. */
const maxCharacters = 16_000_000;

/**
 * The cells of a table as this process last saw them, by the name of their item. They may have changed since.
 *
 * Beyond `maxCount` cells, or 16 million characters, those that were not used for the longest time are forgotten.
 */
export class RememberedCells {
  readonly #cells = new Map<string, StoredCell>();
  #characters = 0;

  constructor(private readonly maxCount: number) {}

  /** Undefined: not seen lately, or there was none. */
  get(name: string): StoredCell | undefined {
    return this.#cells.get(name);
  }

  /** Remembers a cell, or with undefined forgets it. */
  set(name: string, cell: StoredCell | undefined): void {
    this.#forget(name);
    if (cell === undefined) return;
    this.#cells.set(name, cell);
    this.#characters += cell.value.length;
    for (const [oldest] of this.#cells) {
      if (this.#cells.size <= this.maxCount && this.#characters <= maxCharacters) break;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#characters -= this.#cells.get(name)?.value.length ?? 0;
    this.#cells.delete(name);
  }
}
