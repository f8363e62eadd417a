// @ts-check
import PQueue from "p-queue";

/**
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 * @param {() => void} [onCancel]
 * @param {{ strict?: boolean }} [options]
 */
export function paced({ count, perMs, burst }, onStart, onCancel, options = {}) {
  const queue = new PQueue({ intervalCap: burst, interval: (perMs * burst) / count, ...options });
  const started = () => onStart(performance.now());
  const answered = () => {};
  return (/** @type {AbortSignal | undefined} */ signal) => {
    queue.add(started, signal && { signal }).then(answered, onCancel);
  };
}
