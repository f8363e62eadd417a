/** Numbered things in order of an instant, then of a rank. Adding and taking the first cost O(log n). */
export class InstantHeap {
  readonly #instants: number[] = [];
  readonly #ranks: number[] = [];
  readonly #items: number[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The first instant; Infinity when there is none. */
  get firstAt(): number {
    return this.#instants[0] ?? Number.POSITIVE_INFINITY;
  }

  /** The rank that goes with it. */
  get firstRank(): number {
    return this.#ranks[0] ?? 0;
  }

  add(item: number, at: number, rank: number): void {
    let place = this.#items.length;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(at, rank, this.#instants[parent], this.#ranks[parent])) break;
      this.#copy(parent, place);
      place = parent;
    }
    this.#put(place, item, at, rank);
  }

  /** Takes the first out; -1 when there is none. */
  take(): number {
    const first = this.#items[0] ?? -1;
    const item = this.#items.pop();
    const at = this.#instants.pop();
    const rank = this.#ranks.pop();
    if (item === undefined || at === undefined || rank === undefined || this.#items.length === 0) return first;
    let place = 0;
    for (let child = 1; child < this.#items.length; child = 2 * place + 1) {
      if (child + 1 < this.#items.length && this.#isBefore(child + 1, child)) child += 1;
      if (!isBefore(this.#instants[child], this.#ranks[child], at, rank)) break;
      this.#copy(child, place);
      place = child;
    }
    this.#put(place, item, at, rank);
    return first;
  }

  #isBefore(one: number, other: number): boolean {
    return isBefore(this.#instants[one], this.#ranks[one], this.#instants[other], this.#ranks[other]);
  }

  #copy(from: number, to: number): void {
    this.#put(to, this.#items[from], this.#instants[from], this.#ranks[from]);
  }

  #put(place: number, item: number, at: number, rank: number): void {
    this.#items[place] = item;
    this.#instants[place] = at;
    this.#ranks[place] = rank;
  }
}

function isBefore(at: number, rank: number, otherAt: number, otherRank: number): boolean {
  return at === otherAt ? rank < otherRank : at < otherAt;
}
