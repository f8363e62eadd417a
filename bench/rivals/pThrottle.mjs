// @ts-check
import pThrottle from "p-throttle";

export function awaited() {
  return pThrottle({ limit: 1e9, interval: 1000 })(() => true);
}

/**
 * At most `burst` per the time that a burst takes to refill, which is how this library is told a rate.
 *
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 * @param {() => void} [_onCancel]
 * @param {{ strict?: boolean }} [options]
 */
export function paced({ count, perMs, burst }, onStart, _onCancel, options = {}) {
  const throttle = pThrottle({ limit: burst, interval: (perMs * burst) / count, ...options });
  // Its types say that the wrapped function answers as before; it answers with a promise.
  const throttled = /** @type {() => Promise<void>} */ (
    /** @type {unknown} */ (throttle(() => onStart(performance.now())))
  );
  const answered = () => {};
  return () => {
    throttled().then(answered);
  };
}
