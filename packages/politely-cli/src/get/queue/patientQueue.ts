import { durationText } from "../../words.js";
import type { ReturnOptions, UrlQueue } from "./urlQueue.js";

/** How long a queue is tried. */
export interface PatienceOptions {
  /** After so much time without an answer the last error is thrown. */
  readonly giveUpMs: number;
  /** So long one try may take; then it counts as failed, though its answer may still come. Default 20 s. `begin` may take ten minutes. */
  readonly tryMs?: number;
  /** Once it is aborted, what is asked has two seconds left, all of it together, and nothing is tried again. */
  readonly stopped?: AbortSignal;
  /** Told once for each time that the store is away. */
  readonly log: (line: string) => void;
}

/** Longer than a SQLite file is waited for. */
const TRY_MS = 20_000;
/** For what goes over the whole list. */
const LONG_TRY_MS = 600_000;
const STOPPED_MS = 2_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * A queue that asks again while its store is away, and tells the store what it has forgotten when it is back (`onReturn`).
 *
 * A store that is connected and silent counts as away. Everything it does may be done twice, save that URLs claimed with an answer that got lost stay claimed.
 */
export function patientQueue(queue: UrlQueue, options: PatienceOptions): UrlQueue {
  return new PatientQueue(queue, options);
}

class PatientQueue implements UrlQueue {
  #onReturn: ReturnOptions | undefined = undefined;
  /** Something failed since the store was last in order. */
  #isAway = false;
  #restoring: Promise<void> | undefined = undefined;
  #backAtMs = Number.NEGATIVE_INFINITY;
  #stoppedAtMs = Number.POSITIVE_INFINITY;
  /** Those who wait for something, to be told of a stop. One listener serves them all: many may wait at once. */
  readonly #waiting = new Set<() => void>();

  constructor(
    readonly queue: UrlQueue,
    readonly options: PatienceOptions,
  ) {
    const stop = (): void => {
      this.#stoppedAtMs = performance.now();
      for (const hurry of this.#waiting) hurry();
    };
    if (options.stopped?.aborted === true) stop();
    else options.stopped?.addEventListener("abort", stop, { once: true });
  }

  readonly add: UrlQueue["add"] = (urls) => this.#patiently(() => this.queue.add(urls));
  readonly begin: UrlQueue["begin"] = (given) => this.#patiently(() => this.queue.begin(given), LONG_TRY_MS);
  readonly keys: UrlQueue["keys"] = (after, count) => this.#patiently(() => this.queue.keys(after, count));
  readonly claim: UrlQueue["claim"] = (key, count) => this.#patiently(() => this.queue.claim(key, count));
  readonly finish: UrlQueue["finish"] = (urls) => this.#patiently(() => this.queue.finish(urls));
  readonly counts: UrlQueue["counts"] = () => this.#patiently(() => this.queue.counts());
  readonly countsByKey: UrlQueue["countsByKey"] = (count) => this.#patiently(() => this.queue.countsByKey(count));
  /** Whoever calls it calls again. */
  readonly renew: UrlQueue["renew"] = (options) =>
    this.#once(() => this.queue.renew({ ...options, ...(this.#canTakeOver() ? {} : { takesOver: false }) }));
  readonly close: UrlQueue["close"] = () => this.#once(() => this.queue.close());

  onReturn(options: ReturnOptions): void {
    this.#onReturn = options;
  }

  #canTakeOver(): boolean {
    return performance.now() - this.#backAtMs > (this.#onReturn?.graceMs ?? 0);
  }

  async #patiently<Answer>(work: () => Promise<Answer>, tryMs = this.#tryMs()): Promise<Answer> {
    const { giveUpMs, stopped } = this.options;
    const endMs = performance.now() + Math.max(giveUpMs, tryMs);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)) {
      try {
        return await this.#once(work, Math.min(tryMs, endMs - performance.now()));
      } catch (error) {
        if (stopped?.aborted === true || performance.now() + pauseMs > endMs) throw error;
        // A stop ends the pause, and the last try follows.
        await this.#pause(pauseMs);
      }
    }
  }

  async #once<Answer>(work: () => Promise<Answer>, limitMs = this.#tryMs()): Promise<Answer> {
    const inOrder = async (): Promise<Answer> => {
      if (this.#isAway) await this.#return();
      return work();
    };
    try {
      return await this.#within(limitMs, inOrder);
    } catch (error) {
      if (!this.#isAway) this.options.log(`the shared list cannot be reached, trying again: ${String(error)}`);
      this.#isAway = true;
      throw error;
    }
  }

  #tryMs(): number {
    return this.options.tryMs ?? TRY_MS;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiting.add(done);
    });
  }

  /** Does `work`, and rejects when that takes longer than `limitMs`, or than what is left after a stop. */
  #within<Answer>(limitMs: number, work: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(hurry);
      };
      const late = (ms: number): void => {
        done();
        reject(new Error(`no answer within ${durationText(ms)}`));
      };
      let timer = setTimeout(late, limitMs, limitMs);
      const hurry = (): void => {
        clearTimeout(timer);
        const leftMs = Math.min(limitMs, Math.max(0, this.#stoppedAtMs + STOPPED_MS - performance.now()));
        timer = setTimeout(late, leftMs, leftMs);
      };
      if (this.#stoppedAtMs < Number.POSITIVE_INFINITY) hurry();
      else this.#waiting.add(hurry);
      work().then(resolve, reject).finally(done);
    });
  }

  /** Puts the store in order again. All who wait for it wait for the same attempt. */
  #return(): Promise<void> {
    const attempt = async (): Promise<void> => {
      await this.#within(LONG_TRY_MS, async () => this.#onReturn?.restore(this.queue));
      this.#isAway = false;
      this.#backAtMs = performance.now();
      this.options.log("the shared list can be reached again");
    };
    this.#restoring ??= attempt().finally(() => {
      this.#restoring = undefined;
    });
    return this.#restoring;
  }
}
