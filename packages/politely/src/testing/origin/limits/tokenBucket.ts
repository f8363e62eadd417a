import type { LimitState, Quota } from "./limitState.js";

/** What a token bucket is made of: `count` tokens come back each `perUs`, and it holds `burst` of them. */
export interface TokenBucketRule {
  readonly count: number;
  readonly perUs: number;
  /** `burst * perUs` must be a whole number that a double can hold. */
  readonly burst: number;
}

/** Starts full; each request takes a token. Any span of t lets in at most `burst + t * count / per`. Whole numbers only. */
export class TokenBucket implements LimitState {
  readonly #rule: TokenBucketRule;
  /** Taken and not yet back, in token-microseconds: one token owes `perUs`, and `count` of it comes back each microsecond. */
  #owed = 0;
  #seenAtUs = 0;

  constructor(rule: TokenBucketRule) {
    this.#rule = rule;
  }

  waitUs(nowUs: number): number {
    const { count, perUs, burst } = this.#rule;
    const tooMuch = this.#owedAt(nowUs) + perUs - burst * perUs;
    return tooMuch > 0 ? Math.ceil(tooMuch / count) : 0;
  }

  take(nowUs: number): number {
    this.#owed = this.#owedAt(nowUs) + this.#rule.perUs;
    this.#seenAtUs = nowUs;
    return 0;
  }

  quota(nowUs: number): Quota {
    const { count, perUs, burst } = this.#rule;
    const owed = this.#owedAt(nowUs);
    const remaining = Math.floor((burst * perUs - owed) / perUs);
    const resetUs = remaining === 0 ? this.waitUs(nowUs) : Math.ceil(owed / count);
    return { count: burst, remaining, resetAtUs: nowUs + resetUs, windowUs: Math.ceil((burst * perUs) / count) };
  }

  isFresh(nowUs: number): boolean {
    return this.#owedAt(nowUs) === 0;
  }

  #owedAt(nowUs: number): number {
    return Math.max(0, this.#owed - (nowUs - this.#seenAtUs) * this.#rule.count);
  }
}
