import { checkNames } from "../core/checkNames.js";
import { cellStore } from "./cellStore.js";
import type { Store } from "./store.js";
import { checkSize, USUAL_BYTES } from "./threads/memory.js";
import { threadCells } from "./threads/threadCells.js";

/** How threads share a memory. */
export interface ThreadOptions {
  /**
   * How long a change waits for other threads, in milliseconds, before a `StoreError`. Default 5,000. Time during which the process is
   * stopped does not count.
   */
  readonly busyMs?: number;
}

const USUAL_BUSY_MS = 5_000;
const LONGEST_BUSY_MS = 3_600_000;

/**
 * Makes a memory for `threadStore`: once, in the thread that starts the others, which get it as `workerData` or in a message.
 *
 * It never grows. `bytes` is 65,536 to 268,435,456; the default of 4 MiB has room for about 5,000 hosts at a time.
 * Throws `RangeError` for other sizes.
 */
export function threadMemory(bytes: number = USUAL_BYTES): SharedArrayBuffer {
  checkSize(bytes);
  return new SharedArrayBuffer(bytes);
}

/**
 * Keeps limits in `memory`, shared by all threads of one process that make a store of it.
 *
 * A thread may be ended at any moment: what it had not finished has not happened, and the others wait for 0.1 s at most. State that still owes
 * time is never dropped: a change that finds no room fails with a `StoreError` that says how large the memory should be.
 * Time is the monotonic clock of the machine. Each thread keeps an index of the memory, so it takes up to as much again for each.
 *
 * Throws `TypeError` and `RangeError` for wrong arguments, and `StoreError` when the memory holds something else.
 */
export function threadStore(memory: SharedArrayBuffer, options: ThreadOptions = {}): Store {
  checkNames(options, ["busyMs"], "options of threadStore");
  const { busyMs = USUAL_BUSY_MS } = options;
  if (!(busyMs >= 0 && busyMs <= LONGEST_BUSY_MS)) {
    throw new RangeError(`busyMs must be 0 to ${LONGEST_BUSY_MS}; got ${busyMs}`);
  }
  return cellStore(threadCells(memory, { busyMs }));
}
