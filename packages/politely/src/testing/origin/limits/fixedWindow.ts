import type { LimitState, Quota } from "./limitState.js";

/** What a fixed window is made of. */
export interface FixedWindowRule {
  readonly count: number;
  readonly perUs: number;
  /** Added to the clock before windows are cut at its multiples of `perUs`. Undefined: a window starts with its first request. */
  readonly wallOffsetUs: number | undefined;
}

/** Lets in `count` requests in each window, and forgets all of them at its end. Two windows' worth may come in a row. */
export class FixedWindow implements LimitState {
  readonly #rule: FixedWindowRule;
  #startUs = Number.NEGATIVE_INFINITY;
  #used = 0;

  constructor(rule: FixedWindowRule) {
    this.#rule = rule;
  }

  waitUs(nowUs: number): number {
    return this.#usedAt(nowUs) < this.#rule.count ? 0 : this.#startUs + this.#rule.perUs - nowUs;
  }

  take(nowUs: number): number {
    this.#used = this.#usedAt(nowUs) + 1;
    if (this.#used === 1) this.#startUs = this.#startAt(nowUs);
    return 0;
  }

  quota(nowUs: number): Quota {
    const { count, perUs } = this.#rule;
    const used = this.#usedAt(nowUs);
    const startUs = used > 0 ? this.#startUs : this.#startAt(nowUs);
    return { count, remaining: count - used, resetAtUs: startUs + perUs, windowUs: perUs };
  }

  isFresh(nowUs: number): boolean {
    return this.#usedAt(nowUs) === 0;
  }

  #usedAt(nowUs: number): number {
    return nowUs < this.#startUs + this.#rule.perUs ? this.#used : 0;
  }

  #startAt(nowUs: number): number {
    const { perUs, wallOffsetUs } = this.#rule;
    if (wallOffsetUs === undefined) return nowUs;
    return Math.floor((nowUs + wallOffsetUs) / perUs) * perUs - wallOffsetUs;
  }
}
