/** Those who are to be told of one signal, and the listener that tells them. */
interface Watch {
  readonly acts: Set<() => void>;
  readonly listener: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `act` once when the signal aborts, unless the function it gives back is called before.
 *
 * However many share a signal, it has one listener; that goes with the last of them. A signal that has aborted already
 * calls nobody: look first. `act` must not throw.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    watch = watchOf(signal);
    watches.set(signal, watch);
    signal.addEventListener("abort", watch.listener, { once: true });
  }
  const { acts, listener } = watch;
  acts.add(act);
  return () => {
    if (!acts.delete(act) || acts.size > 0) return;
    signal.removeEventListener("abort", listener);
    watches.delete(signal);
  };
}

function watchOf(signal: AbortSignal): Watch {
  const acts = new Set<() => void>();
  const listener = (): void => {
    watches.delete(signal);
    // Whoever is told may take others off the list.
    for (const act of acts) {
      acts.delete(act);
      act();
    }
  };
  return { acts, listener };
}
