/** The instants of the last few arrivals, oldest first, in microseconds. Dropping old ones costs O(1) each. */
export class ArrivalLog {
  #atUs: number[] = [];
  #first = 0;

  get size(): number {
    return this.#atUs.length - this.#first;
  }

  /** The oldest instant that is kept; undefined when there is none. */
  get oldestUs(): number | undefined {
    return this.#atUs[this.#first];
  }

  get newestUs(): number | undefined {
    return this.size === 0 ? undefined : this.#atUs[this.#atUs.length - 1];
  }

  add(atUs: number): void {
    this.#atUs.push(atUs);
  }

  /** Forgets the arrivals at this instant and before it. */
  dropUpTo(us: number): void {
    while (this.#first < this.#atUs.length && this.#atUs[this.#first] <= us) this.#first += 1;
    // Moved up only when half of it is waste, so that each arrival is moved about once.
    if (this.#first * 2 > this.#atUs.length) {
      this.#atUs = this.#atUs.slice(this.#first);
      this.#first = 0;
    }
  }

  clear(): void {
    this.#atUs = [];
    this.#first = 0;
  }
}
