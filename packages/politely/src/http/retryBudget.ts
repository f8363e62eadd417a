import type { RetryRules } from "../policy/types.js";

/** So many hosts have a budget of their own; beyond that the longest unused one is forgotten. */
const MAX_HOSTS = 10_000;

interface Purse {
  tokens: number;
  seenMs: number;
}

/**
 * How many repetitions each host gets: a share of its requests, and so many a minute on top, so that a site in trouble does
 * not get its load doubled. What is saved up is bounded by a minute's worth and the share of 1,000 requests.
 */
export class RetryBudget {
  readonly #purses = new Map<string, Purse>();

  /** A request of its own, no repetition, goes to the host. */
  earn(key: string, rules: RetryRules, nowMs: number): void {
    const purse = this.#purse(key, rules, nowMs);
    purse.tokens = Math.min(purse.tokens + rules.budgetShare, rules.budgetPerMinute + rules.budgetShare * 1_000);
  }

  /** Takes one repetition if there is one left. */
  spend(key: string, rules: RetryRules, nowMs: number): boolean {
    const purse = this.#purse(key, rules, nowMs);
    // A share such as 0.2 added five times is not quite 1.
    if (purse.tokens < 1 - 1e-9) return false;
    purse.tokens -= 1;
    return true;
  }

  #purse(key: string, { budgetPerMinute }: RetryRules, nowMs: number): Purse {
    const known = this.#purses.get(key);
    const purse = known ?? { tokens: budgetPerMinute, seenMs: nowMs };
    const refill = (Math.max(0, nowMs - purse.seenMs) / 60_000) * budgetPerMinute;
    if (purse.tokens < budgetPerMinute) purse.tokens = Math.min(budgetPerMinute, purse.tokens + refill);
    purse.seenMs = nowMs;
    this.#purses.delete(key);
    this.#purses.set(key, purse);
    if (this.#purses.size > MAX_HOSTS) {
      const oldest = this.#purses.keys().next();
      if (oldest.done !== true) this.#purses.delete(oldest.value);
    }
    return purse;
  }
}
