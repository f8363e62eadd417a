/** Those who wait with one abort signal, in order of arrival. */
export interface Watch<Waiting> {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  readonly waiting: Set<Waiting>;
}

/** Watches abort signals with one listener each, however many wait with it. The listener goes with the last of them. */
export class Signals<Waiting extends { watch: Watch<Waiting> | undefined }> {
  readonly #watches = new WeakMap<AbortSignal, Watch<Waiting>>();

  constructor(
    readonly onAbort: (waiting: Waiting, reason: unknown) => void,
    /** Everybody who waited with a signal has been told. */
    readonly onDone: () => void,
  ) {}

  watch(signal: AbortSignal, waiting: Waiting): void {
    let watch = this.#watches.get(signal);
    if (watch === undefined) {
      watch = { signal, listener: () => this.#abort(signal), waiting: new Set() };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", watch.listener);
    }
    watch.waiting.add(waiting);
    waiting.watch = watch;
  }

  unwatch(waiting: Waiting): void {
    const { watch } = waiting;
    if (watch === undefined) return;
    waiting.watch = undefined;
    watch.waiting.delete(waiting);
    if (watch.waiting.size > 0) return;
    watch.signal.removeEventListener("abort", watch.listener);
    this.#watches.delete(watch.signal);
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined) return;
    const { reason } = signal as { readonly reason: unknown };
    // Whoever is told may make others leave: then they are not told any more.
    for (const waiting of watch.waiting) {
      this.unwatch(waiting);
      this.onAbort(waiting, reason);
    }
    this.onDone();
  }
}
