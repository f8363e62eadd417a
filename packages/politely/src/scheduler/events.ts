import type { LimiterEvent } from "../observe/types.js";

/**
 * Passes events on to listeners. One that throws is ignored; the others still hear.
 *
 * They are told in order: what causes others before these, whichever is known first.
 */
export class Events {
  readonly #listeners = new Set<(event: LimiterEvent) => unknown>();
  /** What waits to be told; undefined while everything is told at once. */
  #waiting: LimiterEvent[] | undefined = undefined;

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** Adds a listener and returns how to remove it. The same function twice counts twice. */
  subscribe(listener: (event: LimiterEvent) => unknown, onChange: () => void): () => void {
    const own = (event: LimiterEvent): unknown => listener(event);
    this.#listeners.add(own);
    onChange();
    return () => {
      this.#listeners.delete(own);
      onChange();
    };
  }

  emit(event: LimiterEvent): void {
    if (this.#waiting === undefined) this.#tell(event);
    else this.#waiting.push(event);
  }

  /**
   * Does `work`, then tells what caused it and after that what was told meanwhile. Listeners are called once the work is done; what they cause comes last.
   *
   * Work that throws is its caller's business: what it has told is told, its cause is not. Calls within calls keep the order.
   */
  tellFirst(causes: () => readonly LimiterEvent[], work: () => void): void {
    const isOuter = this.hold();
    const from = this.#waiting?.length ?? 0;
    try {
      work();
      if (this.#waiting !== undefined) this.#waiting.splice(from, 0, ...causes());
    } finally {
      if (isOuter) this.tellHeld();
    }
  }

  /** Lets events wait from here on until `tellHeld`; false where they wait already, or nobody listens. */
  hold(): boolean {
    if (this.#waiting !== undefined || !this.hasListeners) return false;
    this.#waiting = [];
    return true;
  }

  /** Tells what has waited. */
  tellHeld(): void {
    this.#tellAll(this.#waiting ?? []);
  }

  /** Tells all there is, and what is added meanwhile. */
  #tellAll(events: LimiterEvent[]): void {
    this.#waiting = events;
    for (const event of events) this.#tell(event);
    this.#waiting = undefined;
  }

  #tell(event: LimiterEvent): void {
    // A copy, since a listener may come or go meanwhile; one that has gone is not called any more.
    for (const listener of Array.from(this.#listeners)) {
      if (!this.#listeners.has(listener)) continue;
      try {
        const result: unknown = listener(event);
        // A listener may be async without its type saying so; its rejection is ignored like a throw.
        if (result instanceof Promise) result.catch(() => undefined);
      } catch {
        // Watching must not change what is watched.
      }
    }
  }
}
