/** Somebody who waits in `acquire`. */
export interface Caller {
  /** Ends the wait; the caller is told that the service stops. */
  dismiss(): void;
}

/**
 * Those who wait, and how many there may be.
 *
 * They are bounded together with the permits that are held: each of them may become one.
 */
export class Callers {
  /** The service stops: nobody new is let in. */
  isStopping = false;
  /** How many were turned away at the door, which the limiter never heard of. */
  turnedAwayCount = 0;
  readonly #waiting = new Set<Caller>();

  constructor(readonly most: number) {}

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  enter(caller: Caller): void {
    this.#waiting.add(caller);
  }

  leave(caller: Caller): void {
    this.#waiting.delete(caller);
  }

  /** Lets nobody in any more, and dismisses those who wait. */
  stop(): void {
    this.isStopping = true;
    for (const caller of this.#waiting) caller.dismiss();
  }
}
