import type { LimitState, Quota } from "./limitState.js";

/** What a leaky bucket is made of. One request is 1,000 of excess, as nginx counts. */
export interface LeakyBucketRule {
  /** Leaks out in a second, in thousandths of a request. At least 1. */
  readonly ratePerSecond: number;
  /** Above this much excess a request is refused. */
  readonly burst: number;
  /** Up to this much excess a request is not held back. Infinity: none ever is. */
  readonly delay: number;
}

const oneRequest = 1_000;

/**
 * Counts as nginx's `limit_req` does: in whole milliseconds and thousandths of a request, rounding what leaks out down.
 *
 * The first request has no excess. Each later one has the excess of the one before, less what leaked out since, plus
 * one request, and not below zero; it is refused when that is above the burst. A refused request changes nothing.
 */
export class LeakyBucket implements LimitState {
  readonly #rule: LeakyBucketRule;
  #excess = 0;
  #lastMs: number | undefined;

  constructor(rule: LeakyBucketRule) {
    this.#rule = rule;
  }

  waitUs(nowUs: number): number {
    const { burst } = this.#rule;
    if (this.#excessAt(nowUs) <= burst) return 0;
    return this.#leakedAtUs(this.#excess + oneRequest - burst) - nowUs;
  }

  take(nowUs: number): number {
    const { ratePerSecond, delay } = this.#rule;
    this.#excess = this.#excessAt(nowUs);
    this.#lastMs = Math.floor(nowUs / 1_000);
    if (this.#excess <= delay) return 0;
    return Math.floor(((this.#excess - delay) * 1_000) / ratePerSecond) * 1_000;
  }

  quota(nowUs: number): Quota {
    const { ratePerSecond, burst } = this.#rule;
    const count = burst / oneRequest + 1;
    const excess = this.#excessAt(nowUs);
    const remaining = excess > burst ? 0 : Math.floor((burst - excess) / oneRequest) + 1;
    const windowUs = Math.ceil((count * oneRequest * 1_000) / ratePerSecond) * 1_000;
    if (remaining === 0) return { count, remaining, resetAtUs: nowUs + this.waitUs(nowUs), windowUs };
    return {
      count,
      remaining,
      resetAtUs: excess === 0 ? nowUs : this.#leakedAtUs(this.#excess + oneRequest),
      windowUs,
    };
  }

  isFresh(nowUs: number): boolean {
    return this.#excessAt(nowUs) === 0;
  }

  /** The excess that a request at this instant would have. */
  #excessAt(nowUs: number): number {
    if (this.#lastMs === undefined) return 0;
    const elapsedMs = Math.floor(nowUs / 1_000) - this.#lastMs;
    const leaked = Math.floor((this.#rule.ratePerSecond * elapsedMs) / 1_000);
    return Math.max(0, this.#excess - leaked + oneRequest);
  }

  /** The first whole millisecond at which so much has leaked out since the last request. */
  #leakedAtUs(amount: number): number {
    return ((this.#lastMs ?? 0) + Math.ceil((amount * 1_000) / this.#rule.ratePerSecond)) * 1_000;
  }
}
