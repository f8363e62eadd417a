import { DeadlineError } from "../errors.js";
import { durationUs } from "../policy/duration.js";
import type { Duration } from "../types.js";
import { delay } from "./delay.js";
import type { Errand } from "./exchange.js";
import type { Pacer } from "./pacer.js";
import { waitFor } from "./waitFor.js";

/** Reads the `maxWait` of a request in milliseconds; Infinity when there is none. Throws when it makes no sense. */
export function maxWaitMsOf(maxWait: Duration | undefined): number {
  if (maxWait === undefined) return Number.POSITIVE_INFINITY;
  return durationUs(maxWait, "maxWait", { allowZero: true, allowInfinity: true }) / 1000;
}

/** How long one request waits, all that it waits for taken together: until its `maxWait` is over or its signal aborts. */
export class Patience {
  readonly #maxWaitMs: number;
  readonly #untilMs: number;

  /** The time runs from now on. Throws when `maxWait` makes no sense. */
  constructor(
    readonly pacer: Pacer,
    readonly errand: Errand,
  ) {
    this.#maxWaitMs = maxWaitMsOf(errand.options?.maxWait);
    this.#untilMs = pacer.clock.now() + this.#maxWaitMs;
  }

  /** The errand with as much `maxWait` as is left, in whole microseconds, rounded up. */
  rest(): Errand {
    const { errand } = this;
    const leftMs = Math.ceil(this.#leftMs() * 1000) / 1000;
    if (leftMs >= this.#maxWaitMs) return errand;
    return { ...errand, options: { ...errand.options, maxWait: leftMs } };
  }

  /** Waits so long, or until it is woken. Rejects at once with `DeadlineError` when that is more than is left. */
  async pause(ms: number, reason: string, woken: AbortSignal): Promise<void> {
    if (ms > this.#leftMs()) throw this.#late(ms, reason);
    await delay(this.pacer.clock, ms, { signal: this.errand.signal, woken });
  }

  /** Waits for what others may wait for too. Undefined when it is woken before; rejects with `DeadlineError` when nothing is left. */
  waitFor<Value>(promise: Promise<Value>, reason: string, woken: AbortSignal): Promise<Value | undefined> {
    return waitFor(promise, this.pacer.clock, {
      signal: this.errand.signal,
      woken,
      maxWaitMs: this.#leftMs(),
      late: () => this.#late(this.#maxWaitMs, reason),
    });
  }

  #leftMs(): number {
    return Math.max(0, this.#untilMs - this.pacer.clock.now());
  }

  #late(waitMs: number, reason: string): DeadlineError {
    return new DeadlineError(this.pacer.keyOf(this.errand.url), waitMs, reason, this.#maxWaitMs);
  }
}
