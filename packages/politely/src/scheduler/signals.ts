import { closeGaps, isGappy } from "./line.js";

/** Who waits with an abort signal. */
export interface Watched {
  /** Undefined without a signal, and once it no longer matters. */
  watch: SignalWatch | undefined;
  /** In the list of those who share it. */
  watchPlace: number;
}

/** Those who wait with one abort signal, in order of arrival. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  readonly listener: () => void;
  /** With gaps where somebody has left. */
  readonly list: (Watched | undefined)[];
  count: number;
  /** Everybody is being told: the list stays as it is. */
  isTelling: boolean;
}

/**
 * Watches abort signals with one listener each, however many waiters share one.
 *
 * A signal's listener is removed with its last waiter, so that nothing is left behind. Who leaves before leaves a gap in a list of at most 64 places, or four for each who waits.
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
      watch = { signal, listener, list: [], count: 0, isTelling: false };
      this.#watches.set(signal, watch);
      signal.addEventListener("abort", listener);
    }
    waiting.watch = watch;
    waiting.watchPlace = watch.list.push(waiting) - 1;
    watch.count += 1;
  }

  unwatch(waiting: Waiting): void {
    const { watch } = waiting;
    if (watch === undefined) return;
    waiting.watch = undefined;
    if (watch.isTelling) return;
    watch.list[waiting.watchPlace] = undefined;
    watch.count -= 1;
    if (watch.count === 0) this.#forget(watch);
    else if (isGappy(watch.list.length, watch.count)) closeGaps(watch.list, setPlace);
  }

  #abort(signal: AbortSignal): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined) return;
    this.#forget(watch);
    watch.isTelling = true;
    const { reason } = signal as { readonly reason: unknown };
    for (const waiting of watch.list as (Waiting | undefined)[]) {
      // Whoever is told may have made others leave.
      if (waiting?.watch !== watch) continue;
      waiting.watch = undefined;
      this.onAbort(waiting, reason);
    }
    this.onDone();
  }

  #forget(watch: SignalWatch): void {
    watch.signal.removeEventListener("abort", watch.listener);
    this.#watches.delete(watch.signal);
  }
}

function setPlace(waiting: Watched, place: number): void {
  waiting.watchPlace = place;
}
