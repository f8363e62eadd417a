import type { Clock } from "../types.js";
import { toMsAtOrAfter } from "./systemClock.js";

/** The one timer for all keys and waiters. */
export class OneTimer {
  #timer: unknown = undefined;
  #atUs = Number.POSITIVE_INFINITY;

  constructor(
    readonly clock: Clock,
    readonly onTime: () => void,
  ) {}

  /** Has `onTime` called at `atUs` or before, late by `slackUs` without losing anything; Infinity: not at all. */
  set(atUs: number, slackUs: number): void {
    // One that fires too early only makes its owner look once more, so it is left alone.
    if (this.#atUs <= atUs && atUs !== Number.POSITIVE_INFINITY) return;
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    this.#atUs = atUs;
    this.#timer = undefined;
    if (atUs === Number.POSITIVE_INFINITY) return;
    this.#timer = this.clock.setTimer(toMsAtOrAfter(atUs), this.#fired, slackUs / 1000);
  }

  readonly #fired = (): void => {
    this.#timer = undefined;
    this.#atUs = Number.POSITIVE_INFINITY;
    this.onTime();
  };
}
