import { statusMeaning } from "../core/answer.js";
import { PolitelyError } from "../errors.js";
import type { RetryRules } from "../policy/types.js";
import type { FetchOptions, HeadersLike } from "../types.js";
import { delay } from "./delay.js";
import { isNetworkFailure } from "./failure.js";
import type { Pacer } from "./pacer.js";
import { readAnswer } from "./readAnswer.js";
import { RetryBudget } from "./retryBudget.js";

/** The longest wait of our own between two tries; what a site asks for may be longer. */
const MAX_DELAY_MS = 60_000;
/** These do not get better by asking again. */
const HOPELESS: readonly number[] = [501, 505];

/** One request that may be tried more than once. */
export interface Repeatable<Answer> {
  readonly url: string;
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  /** Sends it once. `maxWaitMs` bounds the wait in the limiter; undefined for the caller's own bound. */
  attempt(maxWaitMs: number | undefined): Promise<Answer>;
  status(answer: Answer): number;
  headers(answer: Answer): HeadersLike;
  /** The answer is kept while its place is needed for the next try. */
  letGo(answer: Answer): void;
  /** A better answer came. */
  discard(answer: Answer): void;
}

/** Sends failed requests again, where the policy says so: through the limiter each time, and within the host's budget. */
export class Retrier {
  readonly #budget = new RetryBudget();

  constructor(readonly pacer: Pacer) {}

  /** The rules for a method; undefined when it is sent once only. */
  rulesFor(method: string): RetryRules | undefined {
    const rules = this.pacer.http().retry;
    return rules !== undefined && rules.attempts > 1 && rules.methods.includes(method) ? rules : undefined;
  }

  /**
   * Tries until an answer is good enough or nothing is left: attempts, budget, time.
   *
   * Then the last answer is returned as it is; an error is thrown only where no answer came after it.
   */
  async run<Answer>(request: Repeatable<Answer>, rules: RetryRules): Promise<Answer> {
    const { clock } = this.pacer;
    const key = this.pacer.keyOf(request.url);
    this.#budget.earn(key, rules, clock.now());
    let last: { readonly answer: Answer } | undefined;
    for (let attempt = 1; ; attempt++) {
      let error: unknown;
      try {
        const answer = await request.attempt(attempt === 1 ? undefined : rules.maxWaitMs);
        if (last !== undefined) request.discard(last.answer);
        if (!this.#isWorthwhile(request.status(answer), request.headers(answer))) return answer;
        last = { answer };
      } catch (caught) {
        // The limiter refuses the repetition: it would take too long, or nothing is taken any more.
        if (last !== undefined && caught instanceof PolitelyError) return last.answer;
        if (last !== undefined) request.discard(last.answer);
        last = undefined;
        if (!isNetworkFailure(caught)) throw caught;
        error = caught;
      }
      const delayMs = this.#delayMs(rules, attempt);
      const isEnough =
        attempt >= rules.attempts || delayMs > rules.maxWaitMs || !this.#budget.spend(key, rules, clock.now());
      if (isEnough && last === undefined) throw error;
      if (isEnough && last !== undefined) return last.answer;
      if (last !== undefined) request.letGo(last.answer);
      try {
        await delay(clock, delayMs, request.signal);
      } catch (reason) {
        if (last !== undefined) request.discard(last.answer);
        throw reason;
      }
    }
  }

  #isWorthwhile(status: number, headers: HeadersLike): boolean {
    if (status < 400 || HOPELESS.includes(status)) return false;
    const { retryAfterUs, isExhausted } = readAnswer(headers, this.pacer.clock.wall(), status);
    const kind = statusMeaning(status, retryAfterUs > 0, isExhausted);
    return kind === "rate_limited" || kind === "server_error";
  }

  /** Doubles each time; jitter only lengthens. */
  #delayMs({ delayMs, jitter }: RetryRules, attempt: number): number {
    const steadyMs = Math.min(MAX_DELAY_MS, delayMs * 2 ** Math.min(attempt - 1, 30));
    return steadyMs * (1 + jitter * this.pacer.random());
  }
}

/** The options of a repetition: its wait is bounded by the policy of retries. */
export function withMaxWait(
  options: FetchOptions | undefined,
  maxWaitMs: number | undefined,
): FetchOptions | undefined {
  if (maxWaitMs === undefined || maxWaitMs === Number.POSITIVE_INFINITY) return options;
  return { ...options, maxWait: maxWaitMs };
}
