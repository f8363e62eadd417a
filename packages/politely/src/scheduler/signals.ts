import type { Waiter } from "./lane.js";

/** The waiters of one abort signal. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  first: Waiter | undefined;
  last: Waiter | undefined;
}

/**
 * Watches abort signals with one listener each, however many waiters share one.
 *
 * A signal's listener is removed with its last waiter, so that nothing is left behind.
 */
export class Signals {
  readonly #watches = new Map<AbortSignal, SignalWatch>();

  constructor(readonly onAbort: (waiter: Waiter, reason: unknown) => void) {}

  watch(signal: AbortSignal, waiter: Waiter): void {
    let watch = this.#watches.get(signal);
    if (watch === undefined) {
      const listener = (): void => this.#abort(signal);
      watch = { signal, listener, first: undefined, last: undefined };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", listener);
    }
    waiter.watch = watch;
    waiter.watchPrevious = watch.last;
    if (watch.last === undefined) watch.first = waiter;
    else watch.last.watchNext = waiter;
    watch.last = waiter;
  }

  unwatch(waiter: Waiter): void {
    const { watch, watchPrevious, watchNext } = waiter;
    if (watch === undefined) return;
    if (watchPrevious === undefined) watch.first = watchNext;
    else watchPrevious.watchNext = watchNext;
    if (watchNext === undefined) watch.last = watchPrevious;
    else watchNext.watchPrevious = watchPrevious;
    waiter.watch = undefined;
    waiter.watchPrevious = undefined;
    waiter.watchNext = undefined;
    if (watch.first === undefined) {
      watch.signal.removeEventListener("abort", watch.listener);
      this.#watches.delete(watch.signal);
    }
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    while (watch?.first !== undefined) this.onAbort(watch.first, signal.reason);
  }
}
