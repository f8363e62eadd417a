/** Something that knows where in its heap it is; -1 outside. An item is in one heap at a time. */
export interface Positioned {
  position: number;
}

/** A binary heap whose items can be moved and removed from the middle. The first in order is at the top. */
export class Heap<Item extends Positioned> {
  items: Item[] = [];

  constructor(readonly isBefore: (a: Item, b: Item) => boolean) {}

  get size(): number {
    return this.items.length;
  }

  peek(): Item | undefined {
    return this.items[0];
  }

  push(item: Item): void {
    // A list that grows from nothing makes room for many at once, and most heaps have one.
    if (this.items.length === 0) this.items = [item];
    else this.items.push(item);
    this.#up(item, this.items.length - 1);
  }

  remove(item: Item): void {
    const { position } = item;
    const last = this.items.pop();
    item.position = -1;
    if (last === undefined || last === item) return;
    this.#up(last, position);
    this.#down(last, last.position);
  }

  /** Puts an item whose order has changed where it belongs; pushes it when it is not in the heap. */
  update(item: Item): void {
    if (item.position < 0) this.push(item);
    else {
      this.#up(item, item.position);
      this.#down(item, item.position);
    }
  }

  #up(item: Item, from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (!this.isBefore(item, this.items[parent])) break;
      this.#put(this.items[parent], position);
      position = parent;
    }
    this.#put(item, position);
  }

  #down(item: Item, from: number): void {
    let position = from;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= this.items.length) break;
      if (child + 1 < this.items.length && this.isBefore(this.items[child + 1], this.items[child])) child += 1;
      if (!this.isBefore(this.items[child], item)) break;
      this.#put(this.items[child], position);
      position = child;
    }
    this.#put(item, position);
  }

  #put(item: Item, position: number): void {
    this.items[position] = item;
    item.position = position;
  }
}
