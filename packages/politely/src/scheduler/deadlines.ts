import { Heap } from "./heap.js";
import type { Terms, Waiter } from "./lane.js";

/** The waiters that must not wait for ever, soonest deadline first. Those that are done stay until half of all are, so that leaving costs nothing. */
export class Deadlines {
  readonly #heap = new Heap<Terms>((a, b) => a.deadlineUs < b.deadlineUs);
  #doneCount = 0;

  add(terms: Terms | undefined): void {
    if (terms === undefined || terms.position >= 0 || terms.deadlineUs === Number.POSITIVE_INFINITY) return;
    this.#heap.push(terms);
  }

  /** Puts a waiter where its changed deadline belongs. */
  move(terms: Terms): void {
    if (terms.deadlineUs !== Number.POSITIVE_INFINITY) this.#heap.update(terms);
    else if (terms.position >= 0) this.#heap.remove(terms);
  }

  /** Says that a waiter is done. */
  leave(terms: Terms | undefined): void {
    if (terms === undefined || terms.position < 0) return;
    this.#doneCount += 1;
    if (this.#doneCount * 2 <= this.#heap.size) return;
    this.#heap.filter((other) => other.isWaiting);
    this.#doneCount = 0;
  }

  /** The soonest deadline; Infinity when there is none. */
  get nextUs(): number {
    return this.#first()?.deadlineUs ?? Number.POSITIVE_INFINITY;
  }

  /** A waiter whose deadline has come. */
  due(nowUs: number): Waiter | undefined {
    const first = this.#first();
    return first !== undefined && first.deadlineUs <= nowUs ? first.waiter : undefined;
  }

  #first(): Terms | undefined {
    for (;;) {
      const first = this.#heap.peek();
      if (first === undefined || first.isWaiting) return first;
      this.#heap.remove(first);
      this.#doneCount -= 1;
    }
  }
}
