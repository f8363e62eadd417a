/** How many values one metric may have in a line. */
const VALUES_MOST = 100;

/**
 * Keeps numbers for a line: all of them up to 98; of more, every second, fourth and so on. The smallest and the largest are always among them.
 */
export class Values {
  #kept: number[] = [];
  #stride = 1;
  #count = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = Number.NEGATIVE_INFINITY;

  add(value: number): void {
    if (this.#count % this.#stride === 0) this.#kept.push(value);
    this.#count += 1;
    this.#least = Math.min(this.#least, value);
    this.#most = Math.max(this.#most, value);
    if (this.#kept.length <= VALUES_MOST - 2) return;
    this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
    this.#stride *= 2;
  }

  /** Adds what another keeps. */
  absorb(other: Values): void {
    for (const value of other.list()) this.add(value);
  }

  /** The values, 100 at most. */
  list(): number[] {
    if (this.#count === 0) return [];
    const ends = [this.#least, this.#most].filter(
      (end, index, both) => !this.#kept.includes(end) && both.indexOf(end) === index,
    );
    return [...this.#kept, ...ends];
  }
}
