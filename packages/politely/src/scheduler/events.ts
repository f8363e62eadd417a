import type { LimiterEvent } from "../observe/types.js";

/** Passes events on to listeners. One that throws is ignored; the others still hear. */
export class Events {
  readonly #listeners = new Set<(event: LimiterEvent) => unknown>();

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
