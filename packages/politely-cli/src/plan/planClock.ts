import type { Clock } from "politely";

/**
 * How far a plan looks ahead: 100 years, in microseconds. Up to here every microsecond is a number of its own.
 *
 * What would start later is estimated by the pace up to here.
 */
export const HORIZON_US = 36_525 * 86_400_000_000;

/** In milliseconds, and a power of two, so that adding it to a date is exact. */
const HALF_US = 2 ** -11;

/** A clock that is moved by hand and calls nobody: a plan asks whether something may start, and never waits for it. */
export class PlanClock implements Clock {
  /** Whole microseconds since the beginning of the plan. */
  nowUs = 0;
  #nowMs = 0;

  /** `wallMs` is what a calendar shows at the beginning. */
  constructor(readonly wallMs: number) {}

  now(): number {
    return this.#nowMs;
  }

  wall(): number {
    const ms = this.wallMs + this.#nowMs;
    // A date in milliseconds has no room for whole microseconds. Rounded up, by less than one, the end of a quota's period
    // is still found to the microsecond; rounded down it would be one late.
    return ms - this.wallMs < this.#nowMs ? ms + HALF_US : ms;
  }

  /** Moves to `atUs`, or just past it where milliseconds cannot tell it from the microsecond before. Never back. */
  moveTo(atUs: number): void {
    if (atUs <= this.nowUs) return;
    let ms = atUs / 1000;
    // The engine rounds a reading down to whole microseconds; it must not find itself before the instant that was meant.
    if (Math.floor(ms * 1000 + 0.01) < atUs) ms = (atUs + 1) / 1000;
    this.#nowMs = ms;
    this.nowUs = Math.floor(ms * 1000 + 0.01);
  }

  setTimer(): unknown {
    return undefined;
  }

  clearTimer(): void {
    // No timer is ever set.
  }
}
