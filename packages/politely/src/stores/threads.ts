import { checkNames } from "../core/checkNames.js";
import { StoreError } from "../errors.js";
import { cellStore } from "./cellStore.js";
import type { Cells } from "./cells.js";
import { machineTime } from "./machineTime.js";
import { COPYING, MOST_BYTES, SharedLog, TURN_MASK } from "./sharedLog.js";
import type { Store } from "./store.js";

/** How threads share a memory. */
export interface ThreadOptions {
  /**
   * How long a change waits for other threads, in milliseconds, before a `StoreError`. Default 5,000. Time during which the process is
   * stopped does not count.
   */
  readonly busyMs?: number;
}

const LEAST_BYTES = 64 * 1_024;
const USUAL_BYTES = 4 * 1_024 * 1_024;
const USUAL_BUSY_MS = 5_000;
const LONGEST_BUSY_MS = 3_600_000;
/** Long for a decision, which takes well under a millisecond, and short for those who wait. */
const USUAL_STUCK_MS = 100;
/** A turn is taken away so much later while its thread copies. */
const COPYING_PATIENCE = 20;
/** How often a turn is asked for before other work is let in: about 2 µs. More would take the processor from those who have a turn. */
const SPINS = 200;
/** So often only one turn of the event loop is waited; then 1 ms each time. */
const QUICK_MISSES = 50;
/** Changes that are carried out before other work is let in. */
const AT_ONCE = 64;
/** More than this between two looks at the clock was not a wait: the process was stopped, or busy with something else. */
const LONGEST_STEP_MS = 10;
const HALVES = /\p{Surrogate}/u;

/**
 * Makes a memory for `threadStore`: once, in the thread that starts the others, which get it as `workerData` or in a message.
 *
 * It never grows. `bytes` is 65,536 to 268,435,456; the default of 4 MiB has room for about 4,000 hosts at a time.
 * Throws `RangeError` for other sizes.
 */
export function threadMemory(bytes: number = USUAL_BYTES): SharedArrayBuffer {
  checkSize(bytes);
  return new SharedArrayBuffer(bytes);
}

/**
 * Keeps limits in `memory`, shared by all threads of one process that make a store of it.
 *
 * A thread may be ended at any moment: what it had not finished has not happened, and the others wait for 0.1 s, or 2 s if it was copying its
 * bytes. State that still owes time is never dropped: a change that finds no room fails with a `StoreError` that says how large the memory should be.
 * Time is the monotonic clock of the machine. Each thread keeps a copy of what is in the memory, so it takes up to one and a half times as much again for each.
 *
 * Throws `TypeError` and `RangeError` for wrong arguments, and `StoreError` when the memory holds something else.
 */
export function threadStore(memory: SharedArrayBuffer, options: ThreadOptions = {}): Store {
  checkNames(options, ["busyMs"], "options of threadStore");
  return cellStore(threadCells(memory, options));
}

/** How long others are waited for. */
export interface ThreadPatience extends ThreadOptions {
  /** A turn in which nothing happens for so long is taken away, since its thread has ended or stands still. Default 100; 20 times as long while it copies. */
  readonly stuckMs?: number;
}

/**
 * Keeps strings in shared memory, and changes several in one step. What `threadStore` is made of.
 *
 * Changes of one thread are carried out in the order in which they are asked for, at once when no other thread is at it.
 */
export function threadCells(memory: SharedArrayBuffer, patience: ThreadPatience): Cells {
  const { busyMs = USUAL_BUSY_MS, stuckMs = USUAL_STUCK_MS } = patience;
  if (!(busyMs >= 0 && busyMs <= LONGEST_BUSY_MS))
    throw new RangeError(`busyMs must be 0 to ${LONGEST_BUSY_MS}; got ${busyMs}`);
  checkBuffer(memory);
  const clock = machineTime();
  const log = new SharedLog(memory, () => clock.nowUs());
  const waiting: { attempt(): boolean; reject(error: unknown): void; readonly giveUpMs: number }[] = [];
  // When a process is stopped and goes on an hour later, all its threads were stopped: nobody has kept another waiting for an hour.
  let waitedMs = 0;
  let countedMs = 0;
  let seen = 0n;
  let seenMs = 0;

  /** Takes the turn when it is nobody's, or when nothing has happened in it for too long. */
  function takeTurn(): boolean {
    let state = log.look();
    for (let spin = 0; spin < SPINS; spin++) {
      if ((state & TURN_MASK) === 0n && log.take(state)) return true;
      state = log.look();
    }
    if (state !== seen) [seen, seenMs] = [state, waitedMs];
    const patienceMs = (state & COPYING) === 0n ? stuckMs : COPYING_PATIENCE * stuckMs;
    return waitedMs - seenMs >= patienceMs && log.take(state);
  }

  async function pump(): Promise<void> {
    for (let done = 1, misses = 0; waiting.length > 0; done++) {
      const nowMs = clock.nowUs() / 1_000;
      waitedMs += Math.min(nowMs - countedMs, LONGEST_STEP_MS);
      countedMs = nowMs;
      const isDone = takeTurn() && waiting[0].attempt();
      misses = isDone ? 0 : misses + 1;
      if (isDone) waiting.shift();
      // They stand in the order in which they came, so the first has waited longest.
      while (!isDone && waiting.length > 0 && waiting[0].giveUpMs <= waitedMs)
        waiting.shift()?.reject(busyError(busyMs));
      if (!isDone || done % AT_ONCE === 0) await pause(misses);
    }
  }

  return {
    name: "threads",
    timeline: "machine",
    change: (asked, change) =>
      new Promise((resolve, reject) => {
        // UTF-8 cannot tell halves of characters apart.
        const keys = asked.map((key) => (HALVES.test(key) ? JSON.stringify(key) : key));
        const attempt = (): boolean => log.carryOut(keys, change, resolve, reject);
        if (waiting.push({ attempt, reject, giveUpMs: waitedMs + busyMs }) === 1) void pump();
      }),
  };
}

function busyError(busyMs: number): StoreError {
  const words = `Other threads kept the shared memory busy for ${busyMs} ms.`;
  return new StoreError(`${words} Send less through it, or raise busyMs.`);
}

/** Lets other work in: for a turn of the event loop, or for 1 ms after many misses. */
function pause(misses: number): Promise<void> {
  const { setImmediate } = globalThis as unknown as { setImmediate(this: void, fn: () => void): unknown };
  return new Promise((resolve) => void (misses > QUICK_MISSES ? setTimeout(resolve, 1) : setImmediate(resolve)));
}

function checkSize(bytes: number): void {
  if (!(Number.isInteger(bytes) && bytes >= LEAST_BYTES && bytes <= MOST_BYTES)) {
    throw new RangeError(`A shared memory has ${LEAST_BYTES} to ${MOST_BYTES} bytes; got ${bytes}`);
  }
}

/** Throws `TypeError` for what is no `SharedArrayBuffer` of fixed length, `RangeError` for a wrong size. */
function checkBuffer(buffer: SharedArrayBuffer & { readonly growable?: boolean }): void {
  const kind = Object.prototype.toString.call(buffer).slice("[object ".length, -1);
  if (kind !== "SharedArrayBuffer" || buffer.growable === true) {
    const words = `threadStore needs the SharedArrayBuffer that threadMemory() makes; got ${buffer?.growable === true ? "a growable one" : kind}.`;
    throw new TypeError(`${words} An ArrayBuffer is copied on its way to a worker.`);
  }
  checkSize(buffer.byteLength);
}
