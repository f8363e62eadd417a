/** Who waits with an abort signal. Nobody is watched twice. */
export interface Watched {
  /** Undefined without a signal, and once it no longer matters. */
  watch: SignalWatch | undefined;
}

/** Those who wait with one abort signal, in order of arrival. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  /** With those who have left since it was tidied last; they have another `watch`, or none. */
  list: Watched[];
  count: number;
}

/** So many at least are worth tidying up, and so many for each who still waits. */
const TIDY_FROM = 64;
const LISTED_EACH = 4;

/**
 * Watches abort signals with one listener each, however many waiters share one.
 *
 * A signal's listener is removed with its last waiter, so that nothing is left behind. Who leaves before costs nothing but a place in a list, which is at most four times as long as those
 * who wait.
 */
export class Signals<Waiting extends Watched> {
  /** Weak, so that no table that was left keeps waiters from being collected young. */
  readonly #watches = new WeakMap<AbortSignal, SignalWatch>();

  constructor(
    readonly onAbort: (waiting: Waiting, reason: unknown) => void,
    /** All waiters of a signal have been told. */
    readonly onDone: () => void,
  ) {}

  watch(signal: AbortSignal, waiting: Waiting): void {
    let watch = this.#watches.get(signal);
    if (watch === undefined) {
      const listener = (): void => this.#abort(signal);
      watch = { signal, listener, list: [], count: 0 };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", listener);
    }
    waiting.watch = watch;
    watch.list.push(waiting);
    watch.count += 1;
  }

  unwatch(waiting: Waiting): void {
    const { watch } = waiting;
    if (watch === undefined) return;
    waiting.watch = undefined;
    watch.count -= 1;
    if (watch.count === 0) this.#forget(watch);
    else if (watch.list.length >= TIDY_FROM && watch.count * LISTED_EACH < watch.list.length) {
      watch.list = watch.list.filter((each) => each.watch === watch);
    }
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined) return;
    this.#forget(watch);
    const { reason } = signal as { readonly reason: unknown };
    // The list as it is now: whoever is told may make others leave, and come again.
    for (const waiting of watch.list as Waiting[]) {
      if (waiting.watch !== watch) continue;
      waiting.watch = undefined;
      this.onAbort(waiting, reason);
    }
    this.onDone();
  }

  #forget(watch: SignalWatch): void {
    watch.signal.removeEventListener("abort", watch.listener);
    // An aborted signal is off the map already, and another watch of it may have come since.
    if (this.#watches.get(watch.signal) === watch) this.#watches.delete(watch.signal);
  }
}
