// @ts-check
import { getHeapStatistics } from "node:v8";

/** Keeps what a loop produced reachable, so that the compiler cannot drop the work. */
export const sink = { value: /** @type {unknown} */ (undefined) };

/**
 * Times `loop(count)` and gives nanoseconds per call, one number a sample, after one warm-up of the same size.
 *
 * @param {(count: number) => void | Promise<void>} loop
 * @param {{ count: number; samples: number }} size
 */
export async function nanosecondsPerCall(loop, { count, samples }) {
  await loop(count);
  const times = [];
  for (let i = 0; i < samples; i++) {
    const startMs = performance.now();
    await loop(count);
    times.push(((performance.now() - startMs) * 1e6) / count);
  }
  return times;
}

/** CPU the process has used, user and system, in microseconds. */
export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** JavaScript heap and memory outside it (typed arrays) in use right now, garbage included. */
export function heapBytes() {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics();
  return heap + external;
}

/** Bytes that survive a full collection. Needs `--expose-gc`. */
export async function settledHeapBytes() {
  if (!globalThis.gc) throw new Error("start node with --expose-gc");
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await pauseMs(20);
  }
  return heapBytes();
}

/** @param {number} ms */
export function pauseMs(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @param {number[]} numbers */
export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {boolean} condition @param {string} sentence */
export function ensure(condition, sentence) {
  if (!condition) throw new Error(sentence);
}
