import { Crowd, type InCrowd } from "./crowd.js";

/** Somebody who waits in `acquire`. */
export interface Caller extends InCrowd {
  /** Ends the wait; the caller is told that the service stops. */
  dismiss(): void;
}

/**
 * Those who wait, and how many there may be.
 *
 * They are bounded together with the permits that are held: each of them may become one.
 */
export class Callers {
  readonly #waiting = new Crowd<Caller>();
  readonly #stopping = new AbortController();
  #elsewhere: () => number = () => 0;

  constructor(readonly most: number) {}

  /** Whether the service stops: nobody new is let in. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Aborted once the service stops. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** How many wait in `acquire`. */
  get size(): number {
    return this.#waiting.size;
  }

  /** How many wait in all, in the proxy too. */
  get everywhere(): number {
    return this.size + this.#elsewhere();
  }

  /** Says how many wait elsewhere, beside those who entered here. They have a bound of their own. */
  countElsewhere(count: () => number): void {
    this.#elsewhere = count;
  }

  enter(caller: Caller): void {
    this.#waiting.add(caller);
  }

  leave(caller: Caller): void {
    this.#waiting.remove(caller);
  }

  /** Lets nobody in any more, and dismisses those who wait. */
  stop(): void {
    this.#stopping.abort();
    for (const caller of this.#waiting.toArray()) caller.dismiss();
  }
}
