import type { Explanation, FleetStats, LimiterEvent, Stats } from "../../observe/types.js";
import type { Limits } from "../../policy/types.js";
import type { SharedKeyLimiter, SharedPermit, StatsOptions } from "../../sharedTypes.js";
import type {
  AcquireOptions,
  Decision,
  Duration,
  Outcome,
  PoliteRequestInit,
  RecordOptions,
  ResetWhat,
} from "../../types.js";
import type { StoreLimiter } from "./sharedLimiter.js";

/** The verbs of a shared limiter with one key: those of `limiter`, always about `key`. */
export class StoreKeyLimiter implements SharedKeyLimiter {
  constructor(
    readonly limiter: StoreLimiter,
    readonly key: string,
    readonly reconfigure: (limits: Limits) => Promise<void>,
  ) {}

  acquire(options?: AcquireOptions): Promise<SharedPermit> {
    return this.limiter.acquire(this.key, options);
  }

  tryAcquire(options?: Pick<AcquireOptions, "cost">): Promise<SharedPermit | undefined> {
    return this.limiter.tryAcquire(this.key, options);
  }

  check(): Promise<Decision> {
    return this.limiter.check(this.key);
  }

  record(outcome: Outcome, options?: RecordOptions): Promise<void> {
    return this.limiter.record(this.key, outcome, options);
  }

  run<T>(task: (permit: SharedPermit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    return this.limiter.run(this.key, task, options);
  }

  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T> {
    return this.limiter.wrap(this.key, fn);
  }

  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> =>
    this.limiter.fetch(input, init);

  stats(options: { readonly fleet: true }): Promise<FleetStats>;
  stats(options?: { readonly fleet?: false | undefined }): Promise<Stats>;
  stats(options?: StatsOptions): Promise<Stats | FleetStats>;
  stats(options?: StatsOptions): Promise<Stats | FleetStats> {
    return this.limiter.statsNow(this.key, options);
  }

  explain(): Promise<Explanation> {
    return this.limiter.explain(this.key);
  }

  elapsedMs(): Promise<number> {
    return this.limiter.elapsedMs(this.key);
  }

  isEnabled(): Promise<boolean> {
    return this.limiter.isEnabled(this.key);
  }

  pause(duration?: Duration): Promise<void> {
    return this.limiter.pause(this.key, duration);
  }

  resume(): Promise<void> {
    return this.limiter.resume(this.key);
  }

  cancelWaiting(reason?: unknown): Promise<number> {
    return this.limiter.cancelWaiting(this.key, reason);
  }

  idle(): Promise<void> {
    return this.limiter.idle(this.key);
  }

  configure(limits: Limits): Promise<void> {
    return this.reconfigure(limits);
  }

  reset(what?: ResetWhat): Promise<void> {
    return this.limiter.reset(this.key, what);
  }

  subscribe(listener: (event: LimiterEvent) => void): () => void {
    return this.limiter.subscribe(listener);
  }

  close(options?: { readonly drain?: boolean }): Promise<void> {
    return this.limiter.close(options);
  }
}
