import type { Waiter } from "./lanes.js";

/** Tells those who wait with abort signals, in order of arrival. Each signal has one listener, however many wait with it; the listener goes with the last of them. */
export class Signals {
  readonly #waiting = new Map<AbortSignal, Set<Waiter>>();

  constructor(
    readonly onAbort: (waiter: Waiter, reason: unknown) => void,
    /** Everybody who waited with a signal has been told. */
    readonly onDone: () => void,
  ) {}

  watch(waiter: Waiter): void {
    const { signal } = waiter.options;
    if (signal === undefined) return;
    const waiting = this.#waiting.get(signal);
    if (waiting === undefined) signal.addEventListener("abort", this.#abort);
    this.#waiting.set(signal, (waiting ?? new Set()).add(waiter));
  }

  unwatch(waiter: Waiter): void {
    const { signal } = waiter.options;
    const waiting = signal && this.#waiting.get(signal);
    if (signal === undefined || waiting === undefined) return;
    waiting.delete(waiter);
    if (waiting.size > 0) return;
    signal.removeEventListener("abort", this.#abort);
    this.#waiting.delete(signal);
  }

  readonly #abort = ({ currentTarget, target }: Event): void => {
    const signal = (currentTarget ?? target) as AbortSignal;
    // Whoever is told may make others leave: then they are not told any more.
    for (const waiter of this.#waiting.get(signal) ?? []) {
      this.unwatch(waiter);
      this.onAbort(waiter, signal.reason);
    }
    this.onDone();
  };
}
