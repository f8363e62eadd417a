import type { LimiterEvent } from "../observe/types.js";

/** Passes events on to listeners. One that throws is ignored; the others still hear. */
export class Events {
  readonly #listeners = new Set<(event: LimiterEvent) => void>();

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** Adds a listener and returns how to remove it. The same function twice counts twice. */
  subscribe(listener: (event: LimiterEvent) => void, onChange: () => void): () => void {
    const own = (event: LimiterEvent): void => listener(event);
    this.#listeners.add(own);
    onChange();
    return () => {
      this.#listeners.delete(own);
      onChange();
    };
  }

  emit(event: LimiterEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch {
        // Watching must not change what is watched.
      }
    }
  }
}
