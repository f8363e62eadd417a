import type { Explanation, LimiterEvent, Stats } from "../observe/types.js";
import type { Limits } from "../policy/types.js";
import type {
  AcquireOptions,
  Decision,
  Duration,
  KeyLimiter,
  Outcome,
  Permit,
  PoliteRequestInit,
  RecordOptions,
  ResetWhat,
} from "../types.js";
import type { LocalLimiter } from "./limiter.js";

/** The verbs of a limiter with one key: those of `limiter`, always about `key`. */
export class LocalKeyLimiter implements KeyLimiter {
  constructor(
    readonly limiter: LocalLimiter,
    readonly key: string,
    readonly reconfigure: (limits: Limits) => void,
  ) {}

  acquire(options?: AcquireOptions): Promise<Permit> {
    return this.limiter.acquire(this.key, options);
  }

  tryAcquire(options?: Pick<AcquireOptions, "cost">): Permit | undefined {
    return this.limiter.tryAcquire(this.key, options);
  }

  check(): Decision {
    return this.limiter.check(this.key);
  }

  record(outcome: Outcome, options?: RecordOptions): void {
    this.limiter.record(this.key, outcome, options);
  }

  run<T>(task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    return this.limiter.run(this.key, task, options);
  }

  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T> {
    return this.limiter.wrap(this.key, fn);
  }

  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> =>
    this.limiter.fetch(input, init);

  stats(): Stats {
    return this.limiter.statsNow(this.key);
  }

  explain(): Explanation {
    return this.limiter.explain(this.key);
  }

  elapsedMs(): number {
    return this.limiter.elapsedMs(this.key);
  }

  isEnabled(): boolean {
    return this.limiter.isEnabled(this.key);
  }

  pause(duration?: Duration): void {
    this.limiter.pause(this.key, duration);
  }

  resume(): void {
    this.limiter.resume(this.key);
  }

  cancelWaiting(reason?: unknown): number {
    return this.limiter.cancelWaiting(this.key, reason);
  }

  idle(): Promise<void> {
    return this.limiter.idle(this.key);
  }

  configure(limits: Limits): void {
    this.reconfigure(limits);
  }

  reset(what?: ResetWhat): void {
    this.limiter.reset(this.key, what);
  }

  subscribe(listener: (event: LimiterEvent) => void): () => void {
    return this.limiter.subscribe(listener);
  }

  close(options?: { readonly drain?: boolean }): Promise<void> {
    return this.limiter.close(options);
  }
}
