import type { Terms } from "./lane.js";
import { Line } from "./line.js";

/** The waiters of one abort signal. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  readonly line: Line<Terms>;
}

/**
 * Watches abort signals with one listener each, however many waiters share one.
 *
 * A signal's listener is removed with its last waiter, so that nothing is left behind.
 */
export class Signals {
  /** Weak, so that no table that was left keeps waiters from being collected young. */
  readonly #watches = new WeakMap<AbortSignal, SignalWatch>();

  constructor(
    readonly onAbort: (terms: Terms, reason: unknown) => void,
    /** All waiters of a signal have been told. */
    readonly onDone: () => void,
  ) {}

  watch(signal: AbortSignal, terms: Terms): void {
    let watch = this.#watches.get(signal);
    if (watch === undefined) {
      const listener = (): void => this.#abort(signal);
      watch = { signal, listener, line: new Line() };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", listener);
    }
    terms.watch = watch;
    watch.line.push(terms);
  }

  unwatch(terms: Terms | undefined): void {
    if (terms === undefined) return;
    const { watch } = terms;
    if (watch === undefined) return;
    terms.watch = undefined;
    watch.line.remove(terms);
    if (watch.line.count > 0) return;
    watch.signal.removeEventListener("abort", watch.listener);
    // An aborted signal is off the map already, and another watch of it may have come since.
    if (this.#watches.get(watch.signal) === watch) this.#watches.delete(watch.signal);
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined) return;
    this.#watches.delete(signal);
    signal.removeEventListener("abort", watch.listener);
    const { reason } = signal as { readonly reason: unknown };
    for (const terms of watch.line.toArray()) {
      // Whoever is told may take others off the list.
      if (terms.watch !== watch) continue;
      terms.watch = undefined;
      this.onAbort(terms, reason);
    }
    this.onDone();
  }
}
