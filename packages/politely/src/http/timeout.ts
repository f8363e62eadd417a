import { durationUs } from "../policy/duration.js";
import type { Clock, Duration } from "../types.js";
import type { Flight } from "./flight.js";
import { onAbort } from "./onAbort.js";

/** Reads the `timeout` of a request in milliseconds; undefined when there is none. Throws when it makes no sense. */
export function timeoutMsOf(timeout: Duration | undefined): number | undefined {
  return timeout === undefined ? undefined : durationUs(timeout, "timeout") / 1000;
}

/** How long a request may take from its grant on, and what it fails with then. */
export interface TimeLimit {
  readonly ms: number;
  /** The headers end it. Default false: the last byte does. */
  readonly isUntilHeaders?: boolean;
  /** Default a `TimeoutError` as that of `AbortSignal.timeout`. */
  readonly error?: () => unknown;
}

/** The time limits of one attempt; each hop begins them anew. They leave no timer behind. */
export class Timeouts {
  readonly #controller = new AbortController();
  readonly #timers = new Map<TimeLimit, unknown>();

  constructor(
    readonly clock: Clock,
    readonly limits: readonly TimeLimit[],
  ) {}

  /** A signal that aborts with `signal`, or when the time is over. */
  with(signal: AbortSignal | undefined): AbortSignal {
    const own = this.#controller.signal;
    return signal === undefined ? own : AbortSignal.any([own, signal]);
  }

  /** Begins with a grant, and ends with its flight. */
  start(flight: Flight): void {
    this.#stop(this.limits);
    for (const limit of this.limits) {
      this.#timers.set(
        limit,
        this.clock.setTimer(this.clock.now() + limit.ms, () => void this.#abort(limit)),
      );
    }
    flight.onEnd = () => this.#stop(this.limits);
  }

  headersCame(): void {
    this.#stop(this.limits.filter(({ isUntilHeaders }) => isUntilHeaders));
  }

  /** The same promise; it rejects when the time is over, also where a `fetch` does not mind its signal. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    const { signal } = this.#controller;
    const late = new Promise<never>((_resolve, reject) => onAbort(signal, () => reject(signal.reason)));
    return Promise.race([promise, late]);
  }

  #stop(limits: readonly TimeLimit[]): void {
    for (const limit of limits) {
      this.clock.clearTimer(this.#timers.get(limit));
      this.#timers.delete(limit);
    }
  }

  async #abort(limit: TimeLimit): Promise<void> {
    const timer = this.#timers.get(limit);
    const reason = limit.error === undefined ? tooLate(limit.ms) : await limit.error();
    // The answer may have come just now after all.
    if (this.#timers.get(limit) === timer) this.#controller.abort(reason);
  }
}

function tooLate(ms: number): DOMException {
  return new DOMException(`No answer within ${ms} ms of the start.`, "TimeoutError");
}

/** A signal that aborts after `ms`. */
export function startTimeout(clock: Clock, ms: number): { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  const timer = clock.setTimer(clock.now() + ms, () => controller.abort(tooLate(ms)));
  return { signal: controller.signal, stop: () => clock.clearTimer(timer) };
}
