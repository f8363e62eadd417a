import type { HostRecord } from "./hostRecord.js";
import type { HostState } from "./row.js";

/** Adds hosts up. Each host is taken out before it changes and put in again afterwards, so that a sum costs nothing to read. */
export class FeedSums {
  readonly states: Record<HostState, number> = { flowing: 0, waiting: 0, cooling: 0, paused: 0, idle: 0 };
  waiting = 0;
  inFlight = 0;
  throttled = 0;
  #allowed = 0;
  #unlimited = 0;

  /** What the hosts that are not idle may do a second, together; null where one of them has no limit. */
  get allowedPerSecond(): number | null {
    // Adding and taking away leaves a trace of rounding.
    return this.#unlimited > 0 ? null : Math.max(0, Math.round(this.#allowed * 1e6) / 1e6);
  }

  put(record: HostRecord): void {
    this.#count(record, 1);
  }

  take(record: HostRecord): void {
    this.#count(record, -1);
  }

  #count({ state, waiting, inFlight, throttled, pace }: HostRecord, times: 1 | -1): void {
    this.states[state] += times;
    this.waiting += times * waiting;
    this.inFlight += times * inFlight;
    this.throttled += times * throttled;
    if (state === "idle" || pace === undefined) return;
    if (pace.perSecond === null) this.#unlimited += times;
    else this.#allowed += times * pace.perSecond;
  }
}
