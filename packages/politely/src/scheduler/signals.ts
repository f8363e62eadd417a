import type { Terms } from "./lane.js";

/** The waiters of one abort signal. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  first: Terms | undefined;
  last: Terms | undefined;
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
      watch = { signal, listener, first: undefined, last: undefined };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", listener);
    }
    terms.watch = watch;
    terms.watchPrevious = watch.last;
    if (watch.last === undefined) watch.first = terms;
    else watch.last.watchNext = terms;
    watch.last = terms;
  }

  unwatch(terms: Terms | undefined): void {
    if (terms === undefined) return;
    const { watch } = terms;
    if (watch === undefined) return;
    this.#unlink(watch, terms);
    if (watch.first !== undefined) return;
    watch.signal.removeEventListener("abort", watch.listener);
    // An aborted signal is off the map already, and another watch of it may have come since.
    if (this.#watches.get(watch.signal) === watch) this.#watches.delete(watch.signal);
  }

  #unlink(watch: SignalWatch, terms: Terms): void {
    const { watchPrevious, watchNext } = terms;
    if (watchPrevious === undefined) watch.first = watchNext;
    else watchPrevious.watchNext = watchNext;
    if (watchNext === undefined) watch.last = watchPrevious;
    else watchNext.watchPrevious = watchPrevious;
    terms.watch = undefined;
    terms.watchPrevious = undefined;
    terms.watchNext = undefined;
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined) return;
    this.#watches.delete(signal);
    signal.removeEventListener("abort", watch.listener);
    const { reason } = signal as { readonly reason: unknown };
    // From the front, one at a time: whoever is told may take others off the list.
    for (let terms = watch.first; terms !== undefined; terms = watch.first) {
      this.#unlink(watch, terms);
      this.onAbort(terms, reason);
    }
    this.onDone();
  }
}
