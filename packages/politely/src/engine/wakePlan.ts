/** A timer expected to land no later than this after its instant is left alone. */
const LATE_ALLOWED_MS = 0.05;
/** What one more timer on the way costs, in processor time. */
const STEP_COST_MS = 0.1;
const MAX_STEPS = 4;
/** `setTimeout` calls at once for anything longer. */
const MAX_DELAY_MS = 2 ** 31 - 1;
/** How far one observation moves the estimate. Steps of one size follow the median, whatever the outliers. */
const LEARN_MS = 0.01;

/** How much processor time sharp wake-ups may use. */
export interface WakeBudget {
  /** The share of one core that may be spent on them in the long run. Default 0.03; 0 means plain timers. */
  readonly share?: number;
  /** How much may be saved up, at the start and after idle time. Default 4. */
  readonly savedMs?: number;
}

/**
 * Decides how long to sleep towards an instant with timers of whole milliseconds, and whether to poll for the rest.
 *
 * A timer of `d` ms lands at `d` plus a latency that hardly varies on one machine and is learnt here. So several short
 * timers in a row cover several latencies beside the whole milliseconds, and leave less of a fraction than one long
 * timer does. What is left is polled. If steps and polling cost more than the budget has saved up, one timer lands
 * after the instant instead, by less than 1 ms plus the error of the estimate.
 */
export class WakePlan {
  readonly #share: number;
  readonly #savedMs: number;
  #creditMs: number;
  #creditAtMs = Number.NaN;
  #latencyMs = 0.1;

  constructor({ share = 0.03, savedMs = 4 }: WakeBudget = {}) {
    this.#share = share;
    this.#savedMs = savedMs;
    this.#creditMs = share > 0 ? savedMs : 0;
  }

  /**
   * The whole milliseconds to sleep next when the instant is `leftMs` away, which is more than 0; 0 means poll until it
   * is there.
   *
   * Never between 0 and `minDelayMs`, and at most 2^31 - 1: a longer wait takes several sleeps.
   */
  nextDelayMs(leftMs: number, nowMs: number, minDelayMs: number): number {
    let delayMs = 0;
    let costMs = leftMs;
    let aimMs = leftMs - this.#latencyMs + LATE_ALLOWED_MS;
    const plainMs = Math.max(minDelayMs, Math.ceil(aimMs));
    // With `steps` timers of the shortest delay after this one, this one may sleep for `aimMs`.
    for (let steps = 0; steps <= MAX_STEPS && aimMs >= minDelayMs; steps += 1) {
      const wholeMs = Math.floor(aimMs);
      const pollMs = Math.max(0, aimMs - wholeMs - LATE_ALLOWED_MS);
      if (pollMs + steps * STEP_COST_MS < costMs) {
        costMs = pollMs + steps * STEP_COST_MS;
        delayMs = wholeMs;
      }
      aimMs -= minDelayMs + this.#latencyMs;
    }
    const isAffordable = costMs === 0 || costMs <= this.#creditAt(nowMs);
    return Math.min(isAffordable ? delayMs : plainMs, MAX_DELAY_MS);
  }

  /**
   * Learns from a timer that called `lateMs` after its time. Early calls and stalls of the event loop teach nothing.
   */
  landed(lateMs: number): void {
    if (lateMs >= 0 && lateMs < 1) this.#latencyMs += lateMs > this.#latencyMs ? LEARN_MS : -LEARN_MS;
  }

  /** Takes one timer on the way out of the budget. */
  spendStep(): void {
    this.#creditMs -= STEP_COST_MS;
  }

  /** Takes time spent polling out of the budget. */
  spendPolling(pollMs: number): void {
    this.#creditMs -= pollMs;
  }

  #creditAt(nowMs: number): number {
    const earnedMs = (nowMs - this.#creditAtMs) * this.#share;
    if (earnedMs > 0) this.#creditMs = Math.min(this.#savedMs, this.#creditMs + earnedMs);
    this.#creditAtMs = nowMs;
    return this.#creditMs;
  }
}
