import { isBadAnswer } from "../core/answer.js";
import { PolitelyError } from "../errors.js";
import type { RetryRules } from "../policy/types.js";
import type { FetchOptions, HeadersLike } from "../types.js";
import { delay } from "./delay.js";
import { causeOf, isNetworkFailure } from "./failure.js";
import type { Pacer } from "./pacer.js";
import { maxWaitMsOf } from "./patience.js";
import { RetryBudget } from "./retryBudget.js";
import type { Underway } from "./underway.js";

/** The longest wait of our own between two tries; what a site asks for may be longer. */
const MAX_DELAY_MS = 60_000;
/** These do not get better by asking again. */
const HOPELESS: readonly number[] = [501, 505];

/** One request that may be tried more than once. */
export interface Repeatable<Answer> {
  readonly url: string;
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  /** The caller's own; `maxWait` bounds what a site may ask to wait before a repetition. */
  readonly options?: FetchOptions | undefined;
  /** Sends it once. `maxWaitMs` bounds the wait in the limiter; undefined for the caller's own bound. */
  attempt(maxWaitMs: number | undefined): Promise<Answer>;
  status(answer: Answer): number;
  headers(answer: Answer): HeadersLike;
  /** The answer is kept while its place is needed for the next try. */
  letGo(answer: Answer): void;
  /** A better answer came. */
  discard(answer: Answer): void;
}

/** What is wanted, and how. */
type Wish = Pick<Repeatable<unknown>, "url" | "options">;

/** How a try ended, when that is not good enough. */
type Ending<Answer> =
  | { readonly hasAnswer: true; readonly answer: Answer; readonly because: string }
  | { readonly hasAnswer: false; readonly error: unknown; readonly because: string };

/** Sends failed requests again, where the policy says so: through the limiter each time, and within the host's budget. */
export class Retrier {
  readonly #budget = new RetryBudget();
  readonly #closing = new AbortController();

  constructor(
    readonly pacer: Pacer,
    readonly underway: Underway,
  ) {}

  /** Nothing is sent again from now on. Those who wait to be get their last answer at once, or the error they have. */
  close(): void {
    this.#closing.abort();
  }

  /** The rules for a method; undefined when it is sent once only. */
  rulesFor(method: string): RetryRules | undefined {
    const rules = this.pacer.http().retry;
    return rules !== undefined && rules.attempts > 1 && rules.methods.includes(method) ? rules : undefined;
  }

  /**
   * Tries until an answer is good enough or nothing is left: attempts, budget, time, or the limiter itself.
   *
   * Then the last answer is returned as it is; an error is thrown only where no answer came after it.
   */
  async run<Answer>(request: Repeatable<Answer>, rules: RetryRules): Promise<Answer> {
    const key = this.pacer.keyOf(request.url);
    this.underway.begin(request, key);
    try {
      return await this.#tries(request, key, rules);
    } finally {
      this.underway.end(request);
    }
  }

  async #tries<Answer>(request: Repeatable<Answer>, key: string, rules: RetryRules): Promise<Answer> {
    const { clock } = this.pacer;
    this.#budget.earn(key, rules, clock.now());
    let last: Ending<Answer> | undefined;
    for (let attempt = 1; ; attempt++) {
      let askedMs = 0;
      try {
        const answer = await request.attempt(attempt === 1 ? undefined : rules.maxWaitMs);
        drop(request, last);
        last = undefined;
        const asked = this.#askedBy(key, request.status(answer), request.headers(answer));
        if (asked === undefined) return answer;
        askedMs = asked.waitMs;
        last = { hasAnswer: true, answer, because: asked.because };
      } catch (caught) {
        // The limiter refuses the repetition: it would take too long, or nothing is taken any more.
        if (last !== undefined && caught instanceof PolitelyError) return give(last);
        drop(request, last);
        if (request.signal?.aborted === true || !isNetworkFailure(caught)) throw caught;
        last = { hasAnswer: false, error: caught, because: causeOf(caught) };
      }
      const waitMs = this.#delayMs(request, rules, attempt, askedMs);
      const { signal: woken } = this.#closing;
      const isEnough = attempt >= rules.attempts || waitMs === undefined || woken.aborted;
      if (isEnough || !this.#budget.spend(key, rules, clock.now())) return give(last);
      if (last.hasAnswer) request.letGo(last.answer);
      const { attempts } = rules;
      this.pacer.tell({ type: "retry", key, attempt: attempt + 1, attempts, waitMs, because: last.because });
      try {
        await delay(clock, waitMs, { signal: request.signal, woken });
      } catch (reason) {
        drop(request, last);
        throw reason;
      }
      if (woken.aborted) return give(last);
    }
  }

  /** What an answer asks to wait before the next try, 0 for nothing; undefined when there is none to be made. */
  #askedBy(
    key: string,
    status: number,
    headers: HeadersLike,
  ): { readonly waitMs: number; readonly because: string } | undefined {
    if (status < 400 || HOPELESS.includes(status)) return undefined;
    const outcome = this.pacer.readOutcome({ status, headers }, key);
    const { kind, retryAfterUs, because } = outcome;
    return isBadAnswer(kind) ? { waitMs: retryAfterUs / 1000, because } : undefined;
  }

  /** How long to wait before the limiter is asked for the next try; undefined when that is too long. */
  #delayMs(request: Wish, rules: RetryRules, attempt: number, askedMs: number): number | undefined {
    const { delayMs, jitter, maxWaitMs } = rules;
    // Doubles each time; jitter only lengthens.
    const steadyMs = Math.min(MAX_DELAY_MS, delayMs * 2 ** Math.min(attempt - 1, 30));
    const ownMs = steadyMs * (1 + jitter * this.pacer.random());
    if (ownMs > maxWaitMs) return undefined;
    const coolingMs = this.pacer.coolingMs(request.url);
    const heldMs = Math.max(askedMs, coolingMs);
    if (heldMs <= ownMs) return ownMs;
    if (heldMs > Math.min(maxWaitMs, maxWaitMsOf(request.options?.maxWait))) return undefined;
    // A host that is paced is held by its cooldown, in its lane. One that is not would be asked again too soon.
    return coolingMs > 0 ? ownMs : askedMs;
  }
}

/** Gives the caller what there is. */
function give<Answer>(ending: Ending<Answer>): Answer {
  if (ending.hasAnswer) return ending.answer;
  throw ending.error;
}

/** Something else came after it. */
function drop<Answer>(request: Repeatable<Answer>, ending: Ending<Answer> | undefined): void {
  if (ending?.hasAnswer === true) request.discard(ending.answer);
}

/** The options of a repetition: its wait is bounded by the policy of retries and by the caller, whichever is less. */
export function withMaxWait(
  options: FetchOptions | undefined,
  maxWaitMs: number | undefined,
): FetchOptions | undefined {
  if (maxWaitMs === undefined || maxWaitMs >= maxWaitMsOf(options?.maxWait)) return options;
  return { ...options, maxWait: maxWaitMs };
}
