import type { WindowRule } from "../core/rule.js";
import {
  WINDOW_HEADING,
  windowAdjust,
  windowAppend,
  windowCapacity,
  windowClear,
  windowCountedAt,
  windowLivePairs,
  windowMove,
  windowReadyAt,
  windowRegrain,
  windowUsed,
  windowWords,
} from "../core/window.js";

/** A log that has nothing in it and takes no memory. */
export const NO_LOG = 0;

const FIRST_WORDS = 64;

/**
 * The start logs of all windows of all keys in one block of numbers. A handle is where a log's part begins.
 *
 * Parts come in sizes of powers of two and are used again. The block only grows while logs are in use, and is given back when none is.
 */
export class WindowLogs {
  #memory = new Float64Array(FIRST_WORDS);
  // Word 0 is never given out, so that a handle of 0 can mean "none".
  #end = 1;
  #live = 0;
  readonly #free = new Map<number, number[]>();

  /** When `cost` units fit beside those logged and `pending` more; see `windowReadyAt`. */
  readyAt(handle: number, rule: WindowRule, nowUs: number, cost: number, pending: number): number {
    if (handle !== NO_LOG) return windowReadyAt(this.#memory, handle, rule, nowUs, cost, pending);
    return pending + cost <= rule.count ? nowUs : Number.POSITIVE_INFINITY;
  }

  /** Units inside the window now. */
  used(handle: number, rule: WindowRule, nowUs: number): number {
    return handle === NO_LOG ? 0 : windowUsed(this.#memory, handle, rule, nowUs);
  }

  /** Logs `units` at `startUs` and returns the handle, which may be another one than before. */
  append(handle: number, rule: WindowRule, startUs: number, units: number): number {
    const countedUs = windowCountedAt(rule, startUs);
    const log = handle === NO_LOG ? this.#allocate(1) : handle;
    if (windowAppend(this.#memory, log, rule, countedUs, units)) return log;
    const moved = this.#move(log);
    windowAppend(this.#memory, moved, rule, countedUs, units);
    return moved;
  }

  /** Adds to (or takes from) what was logged at `startUs`, unless that has left the window. */
  adjust(handle: number, rule: WindowRule, startUs: number, change: number, nowUs: number): void {
    if (handle !== NO_LOG) windowAdjust(this.#memory, handle, rule, startUs, change, nowUs);
  }

  /** Another log with the same starts in it, counted as `rule` counts them. */
  copy(handle: number, rule: WindowRule): number {
    if (handle === NO_LOG) return NO_LOG;
    const copy = this.#allocate(windowCapacity(this.#memory, handle));
    windowMove(this.#memory, handle, this.#memory, copy);
    windowRegrain(this.#memory, copy, rule);
    return copy;
  }

  /** The instant that the newest start is counted at; minus infinity when there is none. */
  newestUs(handle: number): number {
    const { memory, count } = this.#flat(handle);
    return count === 0 ? Number.NEGATIVE_INFINITY : memory[WINDOW_HEADING + 2 * count - 2];
  }

  /** Counts everything in `other` in the log as well, and returns the handle. Both are of the same rule; `other` stays as it is. */
  join(handle: number, other: number, rule: WindowRule): number {
    const [mine, theirs] = [this.#flat(handle), this.#flat(other)];
    const pairs = [mine, theirs].flatMap(({ memory, count }) =>
      Array.from({ length: count }, (_, index) =>
        memory.subarray(WINDOW_HEADING + 2 * index, WINDOW_HEADING + 2 * index + 2),
      ),
    );
    pairs.sort((a, b) => a[0] - b[0]);
    const joined = pairs.reduce((log, [countedUs, units]) => this.append(log, rule, countedUs, units), NO_LOG);
    this.release(handle);
    return joined;
  }

  /** The pairs of a log in a block of their own, the oldest first. */
  #flat(handle: number): { memory: Float64Array; count: number } {
    if (handle === NO_LOG) return { memory: new Float64Array(0), count: 0 };
    const memory = new Float64Array(windowWords(windowCapacity(this.#memory, handle)));
    return { memory, count: windowMove(this.#memory, handle, memory, 0) };
  }

  /** Lets a log go. */
  release(handle: number): void {
    if (handle === NO_LOG) return;
    const capacity = windowCapacity(this.#memory, handle);
    this.#live -= 1;
    if (this.#live === 0) {
      this.#memory = new Float64Array(FIRST_WORDS);
      this.#end = 1;
      this.#free.clear();
      return;
    }
    const free = this.#free.get(capacity);
    if (free === undefined) this.#free.set(capacity, [handle]);
    else free.push(handle);
  }

  #move(handle: number): number {
    // Half as much room again as there is to keep, so that returned starts do not make the log grow for ever.
    const live = windowLivePairs(this.#memory, handle);
    const capacity = windowCapacity(this.#memory, handle);
    const larger = this.#allocate(live * 2 > capacity ? capacity * 2 : capacity);
    windowMove(this.#memory, handle, this.#memory, larger);
    this.release(handle);
    return larger;
  }

  #allocate(capacity: number): number {
    this.#live += 1;
    const reused = this.#free.get(capacity)?.pop();
    const handle = reused ?? this.#end;
    if (reused === undefined) {
      this.#end += windowWords(capacity);
      if (this.#end > this.#memory.length) {
        const memory = new Float64Array(Math.max(this.#end, Math.ceil(this.#memory.length * 1.5)));
        memory.set(this.#memory);
        this.#memory = memory;
      }
    }
    windowClear(this.#memory, handle, capacity);
    return handle;
  }
}
