import type { LimiterEvent } from "../observe/types.js";

/**
 * Passes events on to listeners, in the order in which they happened. One that throws is ignored; the others still hear.
 *
 * They are told once what is under way is complete, since a listener may change anything. What they cause comes last.
 */
export class Events {
  /**
   * Notes what happened. Undefined while nobody listens, so that `emit?.({ … })` makes nothing for nobody. Whoever makes things happen calls `flush` at
   * the end.
   */
  emit: ((event: LimiterEvent) => void) | undefined = undefined;
  readonly #listeners = new Set<(event: LimiterEvent) => unknown>();
  #waiting: LimiterEvent[] = [];
  #isTelling = false;

  /** Adds a listener and returns how to remove it. The same function twice counts twice. `onChange` is called after both. */
  subscribe(listener: (event: LimiterEvent) => unknown, onChange: () => void): () => void {
    const own = (event: LimiterEvent): unknown => listener(event);
    const changed = (): void => {
      this.emit = this.#listeners.size === 0 ? undefined : (event) => this.#note(event);
      onChange();
    };
    this.#listeners.add(own);
    changed();
    return () => {
      this.#listeners.delete(own);
      changed();
    };
  }

  #note(event: LimiterEvent): void {
    this.#waiting.push(event);
    // Nothing is kept to itself by a call that throws.
    if (this.#waiting.length === 1) queueMicrotask(() => this.flush());
  }

  /** Tells what has waited, and what is added meanwhile. */
  flush(): void {
    if (this.#isTelling || this.#waiting.length === 0) return;
    this.#isTelling = true;
    for (const event of this.#waiting) this.#tell(event);
    this.#waiting = [];
    this.#isTelling = false;
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
