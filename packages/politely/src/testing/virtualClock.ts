import { Heap, type Positioned } from "../engine/heap.js";
import { globalPlatform } from "../engine/systemClock.js";
import type { Clock } from "../types.js";

// Taken when this file is loaded, so that a test framework's fake timers do not hold the virtual clock still as well.
const { setImmediate } = globalPlatform();

/** Where a virtual clock starts, and how it behaves. */
export interface VirtualClockOptions {
  /** What `now()` shows first, in milliseconds. Default 0. */
  readonly nowMs?: number;
  /** What `wall()` shows first, in milliseconds since 1970. Default midnight of 1 January 2026, UTC. */
  readonly wallMs?: number;
  /**
   * How much before its instant each timer is called, as Node does by up to 1 ms. Default 0.
   *
   * A timer set closer to its instant than this is called exactly at it, so setting it again after an early call gets
   * there.
   */
  readonly timersFireEarlyMs?: number;
  /** How many timers may be called without time moving before the program counts as spinning. Default 1,000,000. */
  readonly maxTimersPerInstant?: number;
  /** How many timers one `runToEnd` may call. Default 10,000,000. */
  readonly maxTimers?: number;
}

/**
 * A clock that moves only when told, so that hours of waiting are tested in milliseconds and come out the same each
 * time.
 *
 * One `advance` or `runToEnd` runs at a time; a second one, also from inside a timer, is rejected, since a missing
 * `await` is the usual cause. A program under test that wants to wait sets a timer.
 *
 * Settling means one whole turn of the event loop: everything that waits for promises only has then run as far as it
 * can. What waits for real input or output, or for several turns, needs more `settle` calls or a real clock.
 */
export class VirtualClock implements Clock {
  readonly #timers = new Heap<VirtualTimer>(isBefore);
  readonly #earlyMs: number;
  readonly #maxTimersPerInstant: number;
  readonly #maxTimers: number;
  #nowMs: number;
  /** Wall time minus monotonic time. */
  #wallOffsetMs: number;
  #timersSet = 0;
  #calledAtInstant = 0;
  #isRunning = false;

  constructor(options: VirtualClockOptions = {}) {
    this.#nowMs = finite("nowMs", options.nowMs ?? 0);
    this.#wallOffsetMs = finite("wallMs", options.wallMs ?? Date.UTC(2026, 0, 1)) - this.#nowMs;
    this.#earlyMs = duration("timersFireEarlyMs", options.timersFireEarlyMs ?? 0);
    this.#maxTimersPerInstant = bound("maxTimersPerInstant", options.maxTimersPerInstant ?? 1_000_000);
    this.#maxTimers = bound("maxTimers", options.maxTimers ?? 10_000_000);
  }

  /** Monotonic milliseconds. Inside a timer that is called early this is the early time. */
  now(): number {
    return this.#nowMs;
  }

  /** Milliseconds since 1970. Moves with `now()`, and alone with `setWall` and `shiftWall`. */
  wall(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** How many timers are set and neither called nor cleared. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /**
   * Calls `fn` once when time is moved to `atMs` or past it. An instant that has passed counts as now; not finite is a
   * `RangeError`.
   */
  setTimer(atMs: number, fn: () => void): unknown {
    const earlyMs = finite("atMs", atMs) - this.#earlyMs;
    // Early only where that is progress: a timer that is called and set again for the same instant must get there.
    const callAtMs = earlyMs > this.#nowMs ? earlyMs : Math.max(atMs, this.#nowMs);
    const timer = new VirtualTimer(callAtMs, this.#timersSet, fn);
    this.#timersSet += 1;
    this.#timers.push(timer);
    return timer;
  }

  /** Makes a timer not be called. One that was called or cleared already, or anything else, is ignored. */
  clearTimer(timer: unknown): void {
    // The second test keeps a timer of another clock from being looked for in this one.
    if (timer instanceof VirtualTimer && this.#timers.items[timer.position] === timer) this.#timers.remove(timer);
  }

  /** Lets promises settle without moving. Timers that are due stay pending. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve, undefined);
    });
  }

  /**
   * Moves time by `ms`, which may be 0, and ends exactly there.
   *
   * Promises settle first. Then each timer that is due is called at its own time, in order of time, then of being set,
   * and promises settle after each. Timers set on the way count. An error thrown by a timer rejects the call, with time
   * where it was. A `stall` inside a timer that goes past the end is kept, since time never moves back.
   */
  async advance(ms: number): Promise<void> {
    duration("ms", ms);
    await this.#run(this.#nowMs + ms, Number.POSITIVE_INFINITY);
  }

  /** Moves from timer to timer until none is pending. Rejects after `maxTimers` of them: a repeating one never ends. */
  async runToEnd(): Promise<void> {
    await this.#run(Number.POSITIVE_INFINITY, this.#maxTimers);
  }

  /**
   * Moves time by `ms` at once, as an event loop that hangs does: timers due meanwhile are called late, by the next
   * `advance`.
   */
  stall(ms: number): void {
    this.#moveTo(this.#nowMs + duration("ms", ms));
  }

  /** Sets the wall clock, forwards or backwards. Monotonic time and timers do not notice. */
  setWall(wallMs: number): void {
    this.#wallOffsetMs = finite("wallMs", wallMs) - this.#nowMs;
  }

  /** Moves the wall clock by `ms`, negative for back. Monotonic time and timers do not notice. */
  shiftWall(ms: number): void {
    this.#wallOffsetMs += finite("ms", ms);
  }

  async #run(endMs: number, maxTimers: number): Promise<void> {
    if (this.#isRunning) {
      throw new Error("This VirtualClock is already moving. Await each advance() and runToEnd() before the next.");
    }
    this.#isRunning = true;
    try {
      await this.settle();
      for (let called = 0; ; called += 1) {
        const timer = this.#timers.peek();
        // A stall inside a timer may have gone past the end; what it made due is called too.
        if (timer === undefined || timer.callAtMs > Math.max(endMs, this.#nowMs)) break;
        if (called >= maxTimers) throw new Error(this.#tooMany(`${maxTimers} timers were called`, "maxTimers"));
        this.#call(timer);
        await this.settle();
      }
      if (endMs < Number.POSITIVE_INFINITY) this.#moveTo(endMs);
    } finally {
      this.#isRunning = false;
    }
  }

  #call(timer: VirtualTimer): void {
    this.#moveTo(timer.callAtMs);
    if (this.#calledAtInstant >= this.#maxTimersPerInstant) {
      const what = `${this.#calledAtInstant} timers were called without time moving`;
      throw new Error(this.#tooMany(what, "maxTimersPerInstant"));
    }
    this.#calledAtInstant += 1;
    this.#timers.remove(timer);
    timer.fn();
  }

  #moveTo(ms: number): void {
    if (ms <= this.#nowMs) return;
    this.#nowMs = ms;
    this.#calledAtInstant = 0;
  }

  #tooMany(what: string, option: string): string {
    const where = `${what}, at ${this.#nowMs} ms ${this.#timers.size} are pending.`;
    return `${where} A timer sets itself again for ever, or ${option} is too low.`;
  }
}

class VirtualTimer implements Positioned {
  position = -1;

  constructor(
    readonly callAtMs: number,
    readonly order: number,
    readonly fn: () => void,
  ) {}
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.callAtMs < b.callAtMs || (a.callAtMs === b.callAtMs && a.order < b.order);
}

function finite(name: string, value: number): number {
  if (!Number.isFinite(value)) throw new RangeError(`${name} must be a finite number, got ${value}.`);
  return value;
}

function duration(name: string, value: number): number {
  if (!(value >= 0) || value === Number.POSITIVE_INFINITY) {
    throw new RangeError(`${name} must be a finite number of milliseconds from 0, got ${value}.`);
  }
  return value;
}

function bound(name: string, value: number): number {
  if (!Number.isInteger(value) || value < 1)
    throw new RangeError(`${name} must be a whole number from 1, got ${value}.`);
  return value;
}
