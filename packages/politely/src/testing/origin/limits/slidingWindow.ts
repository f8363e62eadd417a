import { ArrivalLog } from "./arrivalLog.js";
import type { LimitState, Quota } from "./limitState.js";

/** What a sliding window is made of. */
export interface SlidingWindowRule {
  readonly count: number;
  readonly perUs: number;
}

/** Lets in at most `count` requests in every interval (t, t + per]. A refused request is not counted. */
export class SlidingWindow implements LimitState {
  readonly #rule: SlidingWindowRule;
  readonly #log = new ArrivalLog();

  constructor(rule: SlidingWindowRule) {
    this.#rule = rule;
  }

  waitUs(nowUs: number): number {
    const { count, perUs } = this.#rule;
    this.#log.dropUpTo(nowUs - perUs);
    const { size, oldestUs } = this.#log;
    return size < count || oldestUs === undefined ? 0 : oldestUs + perUs - nowUs;
  }

  take(nowUs: number): number {
    this.#log.add(nowUs);
    return 0;
  }

  quota(nowUs: number): Quota {
    const { count, perUs } = this.#rule;
    const waitUs = this.waitUs(nowUs);
    const { size, newestUs } = this.#log;
    const fullAtUs = newestUs === undefined ? nowUs : newestUs + perUs;
    return { count, remaining: count - size, resetAtUs: waitUs > 0 ? nowUs + waitUs : fullAtUs, windowUs: perUs };
  }

  isFresh(nowUs: number): boolean {
    this.#log.dropUpTo(nowUs - this.#rule.perUs);
    return this.#log.size === 0;
  }
}
