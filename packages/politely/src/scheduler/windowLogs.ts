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
  windowRecall,
  windowSpan,
  windowUsed,
  windowWords,
} from "../shared/window.js";

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
  /** Logs with starts in them that were counted more coarsely, by another rule, up to an instant. Rare. */
  readonly #coarse = new Map<number, { readonly rule: WindowRule; readonly untilUs: number }>();

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
    if (handle !== NO_LOG) {
      if (windowAppend(this.#memory, handle, rule, windowCountedAt(rule, startUs), units)) return handle;
      // Also when nobody has asked before: how much room a log takes, and so how far back it goes, follows from the starts alone.
      windowUsed(this.#memory, handle, rule, startUs);
    }
    return this.#put(handle, rule, startUs, units);
  }

  #put(handle: number, rule: WindowRule, startUs: number, units: number): number {
    const countedUs = windowCountedAt(rule, startUs);
    const log = handle === NO_LOG ? this.#allocate(1) : handle;
    if (windowAppend(this.#memory, log, rule, countedUs, units)) return log;
    const moved = this.#move(log);
    windowAppend(this.#memory, moved, rule, countedUs, units);
    return moved;
  }

  /**
   * Adds to what was logged at `startUs`, unless that has left the window, or takes from it. Nothing is taken for a start from before the
   * oldest that is known: what lies there now is another's.
   */
  adjust(handle: number, rule: WindowRule, startUs: number, change: number, nowUs: number): void {
    if (handle === NO_LOG) return;
    const countedUs = windowCountedAt(rule, this.#coarselyAt(handle, startUs));
    const isInside = countedUs + rule.perUs > nowUs;
    if (change < 0) {
      // One that has left may be counted again by a longer window, unless it was never sent.
      if (!isInside) windowRecall(this.#memory, handle);
      if (windowSpan(this.#memory, handle).oldestUs <= countedUs) {
        windowAdjust(this.#memory, handle, rule, startUs, change, Number.NEGATIVE_INFINITY);
      }
      windowUsed(this.#memory, handle, rule, nowUs);
    } else if (isInside) windowAdjust(this.#memory, handle, rule, startUs, change, nowUs);
  }

  #coarselyAt(handle: number, startUs: number): number {
    const coarse = this.#coarse.size === 0 ? undefined : this.#coarse.get(handle);
    return coarse === undefined || startUs > coarse.untilUs ? startUs : windowCountedAt(coarse.rule, startUs);
  }

  /** Another log with the starts that `rule` counts in it, as it counts them; so far `from` did. One with nothing in it is still a log. */
  copy(handle: number, from: WindowRule, rule: WindowRule): number {
    if (handle === NO_LOG) return NO_LOG;
    const copy = this.#logged(this.#pairs(handle), this.#allocate(1), rule);
    const coarse =
      from.grainUs > rule.grainUs ? { rule: from, untilUs: this.newestUs(copy) } : this.#coarse.get(handle);
    if (coarse !== undefined) this.#coarse.set(copy, coarse);
    return copy;
  }

  /** The instant that the newest start is counted at; minus infinity when there is none. */
  newestUs(handle: number): number {
    return handle === NO_LOG ? Number.NEGATIVE_INFINITY : windowSpan(this.#memory, handle).newestUs;
  }

  /** The oldest instant of a start that is known, also of one that has left the window; Infinity when none is. Of two logs of one key, the one that goes back further knows more. */
  knownSinceUs(handle: number): number {
    return this.#pairs(handle)[0]?.[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Counts everything in `other` in the log as well, and returns the handle. `other` stays as it is. */
  join(handle: number, other: number, rule: WindowRule): number {
    const pairs = [...this.#pairs(handle), ...this.#pairs(other)];
    pairs.sort((a, b) => a[0] - b[0]);
    const joined = this.#logged(pairs, NO_LOG, rule);
    this.release(handle);
    return joined;
  }

  /** All of them, however many: of starts made under a larger limit, more than twice this one's count may still be returned. */
  #logged(pairs: readonly Float64Array[], empty: number, rule: WindowRule): number {
    const roomy = { ...rule, count: Number.POSITIVE_INFINITY };
    return pairs.reduce((log, [countedUs, units]) => this.#put(log, roomy, countedUs, units), empty);
  }

  /** The pairs of a log, the oldest first, as far back as they are known. */
  #pairs(handle: number): Float64Array[] {
    if (handle === NO_LOG) return [];
    const words = windowWords(windowCapacity(this.#memory, handle));
    const block = this.#memory.slice(handle, handle + words);
    windowRecall(block, 0);
    const flat = new Float64Array(words);
    return Array.from({ length: windowMove(block, 0, flat, 0) }, (_, index) =>
      flat.subarray(WINDOW_HEADING + 2 * index, WINDOW_HEADING + 2 * index + 2),
    );
  }

  /** Lets a log go. */
  release(handle: number): void {
    if (handle === NO_LOG) return;
    const capacity = windowCapacity(this.#memory, handle);
    this.#live -= 1;
    this.#coarse.delete(handle);
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
    const coarse = this.#coarse.get(handle);
    if (coarse !== undefined) this.#coarse.set(larger, coarse);
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
