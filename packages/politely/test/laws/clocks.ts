import type { Clock } from "../../src/index.js";
import type { VirtualClock } from "../../src/testing/index.js";

/** A clock whose `now` can be set back, as a broken machine's would be. Timers keep their true distance. */
export class SteppingClock implements Clock {
  readonly #inner: VirtualClock;
  #behindMs = 0;

  constructor(inner: VirtualClock) {
    this.#inner = inner;
  }

  /** Sets `now` back from here on. */
  stepBack(ms: number): void {
    this.#behindMs += ms;
  }

  now(): number {
    return this.#inner.now() - this.#behindMs;
  }

  wall(): number {
    return this.#inner.wall();
  }

  setTimer(atMs: number, fn: () => void): unknown {
    return this.#inner.setTimer(atMs + this.#behindMs, fn);
  }

  clearTimer(timer: unknown): void {
    this.#inner.clearTimer(timer);
  }
}

/** A clock whose timers come late, each by what `lateMs` says. */
export class LateClock implements Clock {
  readonly #inner: VirtualClock;
  readonly #lateMs: () => number;

  constructor(inner: VirtualClock, lateMs: () => number) {
    this.#inner = inner;
    this.#lateMs = lateMs;
  }

  now(): number {
    return this.#inner.now();
  }

  wall(): number {
    return this.#inner.wall();
  }

  setTimer(atMs: number, fn: () => void): unknown {
    return this.#inner.setTimer(atMs + this.#lateMs(), fn);
  }

  clearTimer(timer: unknown): void {
    this.#inner.clearTimer(timer);
  }
}
