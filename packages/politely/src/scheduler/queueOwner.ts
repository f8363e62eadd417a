import type { Counsel } from "./counsel.js";
import type { LaneSpec, Waiter } from "./lane.js";

/** What the queue asks of the limiter it works for. */
export interface QueueOwner {
  nowUs(): number;
  /** Takes the start and hands out the permit. The waiter has left its lane. */
  grant(waiter: Waiter, spec: LaneSpec, nowUs: number): void;
  /** The waiter reached its deadline and has left its lane. */
  expire(waiter: Waiter, spec: LaneSpec, nowUs: number): void;
  /** The waiter's signal is aborted. Must take it out of its lane. */
  abort(waiter: Waiter, reason: unknown): void;
  /** `alarmUs` has come. */
  alarm(nowUs: number): void;
  /** The queue is at rest until the next call or timer. */
  flush(): void;
  /** Has the last word on starts; undefined when the limits in this process have it. */
  readonly counsel: Counsel | undefined;
}
