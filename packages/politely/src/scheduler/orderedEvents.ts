import type { LimiterEvent } from "../observe/types.js";
import { Events } from "./events.js";

/** Events that are told in order: what causes others before these, whichever is known first. */
export class OrderedEvents extends Events {
  /** What waits to be told; undefined while everything is told at once. */
  #waiting: LimiterEvent[] | undefined = undefined;

  override emit(event: LimiterEvent): void {
    if (this.#waiting === undefined) super.emit(event);
    else this.#waiting.push(event);
  }

  /**
   * Does `work`, then tells what caused it and after that what was told meanwhile. Listeners are called once the work is done; what they cause comes last.
   *
   * Work that throws is its caller's business: what it has told is told, its cause is not. Calls within calls keep the order.
   */
  tellFirst(causes: () => readonly LimiterEvent[], work: () => void): void {
    if (!this.hasListeners) {
      work();
      return;
    }
    const outer = this.#waiting;
    const own: LimiterEvent[] = [];
    this.#waiting = own;
    try {
      work();
      own.unshift(...causes());
    } finally {
      this.#waiting = outer;
      if (outer === undefined) this.#tellAll(own);
      else for (const event of own) outer.push(event);
    }
  }

  /** Tells all there is, and what is added meanwhile. */
  #tellAll(events: LimiterEvent[]): void {
    this.#waiting = events;
    for (const event of events) super.emit(event);
    this.#waiting = undefined;
  }
}
