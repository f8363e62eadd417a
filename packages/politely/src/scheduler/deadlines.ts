import { Heap, type Positioned } from "../engine/heap.js";

/** Something with a deadline; it may be over before. */
export interface Dated extends Positioned {
  readonly deadlineUs: number;
  readonly isWaiting: boolean;
}

/** Those that must not wait for ever, soonest deadline first. Those that are done stay until half of all are, so that leaving costs nothing. */
export class Deadlines<Item extends Dated> {
  readonly #heap = new Heap<Item>((a, b) => a.deadlineUs < b.deadlineUs);
  #doneCount = 0;

  add(item: Item | undefined): void {
    if (item === undefined || item.position >= 0 || item.deadlineUs === Number.POSITIVE_INFINITY) return;
    this.#heap.push(item);
  }

  /** Puts one where its changed deadline belongs. */
  move(item: Item): void {
    if (item.deadlineUs !== Number.POSITIVE_INFINITY) this.#heap.update(item);
    else if (item.position >= 0) this.#heap.remove(item);
  }

  /** Says that one is done. */
  leave(item: Item | undefined): void {
    if (item === undefined || item.position < 0) return;
    this.#doneCount += 1;
    if (this.#doneCount * 2 <= this.#heap.size) return;
    for (const done of this.#heap.items.filter((other) => !other.isWaiting)) this.#heap.remove(done);
    this.#doneCount = 0;
  }

  /** The soonest deadline; Infinity when there is none. */
  get nextUs(): number {
    return this.#first()?.deadlineUs ?? Number.POSITIVE_INFINITY;
  }

  /** One whose deadline has come. */
  due(nowUs: number): Item | undefined {
    const first = this.#first();
    return first !== undefined && first.deadlineUs <= nowUs ? first : undefined;
  }

  #first(): Item | undefined {
    for (;;) {
      const first = this.#heap.peek();
      if (first === undefined || first.isWaiting) return first;
      this.#heap.remove(first);
      this.#doneCount -= 1;
    }
  }
}
