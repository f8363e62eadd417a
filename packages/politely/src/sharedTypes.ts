/// <reference lib="esnext.disposable" preserve="true" />
import type { Explanation, FleetStats, LimiterEvent, Stats } from "./observe/types.js";
import type { Limits, PolicyInput } from "./policy/types.js";
import type { Store } from "./stores/store.js";
import type {
  AcquireOptions,
  Decision,
  Duration,
  KeyLimiter,
  Limiter,
  LimiterOptions,
  Outcome,
  Permit,
  PoliteRequestInit,
  RecordOptions,
  ReleaseOptions,
  ResetWhat,
  Target,
} from "./types.js";

/** How a limiter with a store works inside, beside its policy. */
export interface SharedOptions extends Omit<LimiterOptions, "store"> {
  /** Where the limits are kept that all processes share: `redisStore(…)`, `postgresStore(…)`, `dynamodbStore(…)`, `sqliteStore(…)`, `threadStore(…)`. */
  readonly store: Store;
  /** Stands before the names of all keys in the store, so that limiters with different names share nothing. Default none; `limit` needs one. */
  readonly name?: string | undefined;
  /**
   * What holds while the store is away. `"share"`, the default: this process's part of each limit, the whole divided by the
   * most processes seen in the last minutes (ten when the store was never met). `"closed"`: every request is refused with a `StoreError`. `"open"`: none is.
   */
  readonly outage?: "share" | "closed" | "open" | undefined;
  /**
   * Takes starts of fast keys in advance, for those who wait, at most 10 ms of the rate at a time: many starts for one question to
   * the store. An interval as long as a limit may then hold up to 2 % too many starts. Default false.
   */
  readonly batch?: boolean | undefined;
}

/** A granted start of a limiter with a store. `startedAtMs` is an instant of the store's timeline. */
export interface SharedPermit extends Omit<Permit, "release" | "report">, AsyncDisposable {
  /**
   * As `Permit.release`. Resolves once the store has heard what it needs to know; while it is away, at once: it is told when it is back.
   * Rejects only for an outcome or option that makes no sense.
   */
  release(outcome?: Outcome, options?: ReleaseOptions): Promise<void>;
  report(outcome: Outcome): Promise<void>;
}

/** Which statistics `stats` gives. */
export interface StatsOptions {
  /** True: `FleetStats`, what the store knows of all processes together. Default false: counts of this process. */
  readonly fleet?: boolean | undefined;
}

/** Paces requests to any number of hosts, with limits that all processes with the same store share. The verbs of `Limiter`, answering with promises. */
export interface SharedLimiter {
  /**
   * Waits its turn, then grants. Never throws; rejects as `Limiter.acquire` does, and with `StoreError` when the store cannot be
   * asked and `outage` is `"closed"`.
   */
  acquire(target: Target, options?: AcquireOptions): Promise<SharedPermit>;
  /** Grants if a start is possible at this moment and nobody in this process waits for the same; else resolves to undefined and takes nothing. */
  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Promise<SharedPermit | undefined>;
  /** Tells whether a start is possible now, and if not, how long to wait. Takes nothing. */
  check(target: Target): Promise<Decision>;
  /** Counts a request made without a permit as a start, for all processes, and reports its answer. */
  record(target: Target, outcome: Outcome, options?: RecordOptions): Promise<void>;
  run<T>(target: Target, task: (permit: SharedPermit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  wrap<This, Args extends unknown[], T>(
    target: Target | ((...args: Args) => Target),
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T>;
  /** The standard `fetch`, paced and listening; as `Limiter.fetch`. */
  fetch(input: string | URL | Request, init?: PoliteRequestInit): Promise<Response>;
  /**
   * What the store knows of one host, of all processes; undefined when it knows nothing of it. Rejects with `StoreError` while the store is
   * away, whatever `outage` says: this process does not know it.
   */
  stats(target: Target, options: { readonly fleet: true }): Promise<FleetStats | undefined>;
  /** A copy of one host's statistics: counts of this process, with tokens, windows and cooldown as the store knows them; undefined when it was never seen here. */
  stats(target: Target, options?: { readonly fleet?: false | undefined }): Promise<Stats | undefined>;
  stats(target: Target, options?: StatsOptions): Promise<Stats | FleetStats | undefined>;
  /** All hosts kept by this process, counts of this process only. */
  stats(): Promise<Stats[]>;
  /** The same rows, each made when it is asked for; as `Limiter.eachStats`. No promise: the store is not asked. */
  eachStats(): IterableIterator<Stats>;
  /** Says why a request would wait now, the most binding cause first, and whose limit it is where another process's is stricter. */
  explain(target: Target): Promise<Explanation>;
  /** Milliseconds since the last start of any process; Infinity before the first, or when it is long ago. */
  elapsedMs(target: Target): Promise<number>;
  /** Whether anything limits requests to it, by the policy of this process. */
  isEnabled(target: Target): Promise<boolean>;
  /** Holds one host for all processes, for `duration` or until `resume`; without a target, everything in this process. */
  pause(target?: Target, duration?: Duration): Promise<void>;
  /** Ends a pause of one host for all processes; without a target, the pause of this process and every pause it made. A cooldown goes on. */
  resume(target?: Target): Promise<void>;
  /** Rejects everybody of this process waiting for one host, or all, with `reason`; resolves to how many. */
  cancelWaiting(target?: Target, reason?: unknown): Promise<number>;
  /** Resolves once nobody in this process waits, nothing of it is in flight and nothing that failed is to be sent again. */
  idle(target?: Target): Promise<void>;
  /** Replaces the policy of this process. Processes with another one go on with theirs; the stricter applies. */
  configure(policy: PolicyInput): Promise<void>;
  /** Forgets the state of one host for all processes, or of all hosts this process knows. Default `"pacing"`. */
  reset(target?: Target, what?: ResetWhat): Promise<void>;
  /** Calls `listener` for every event of this process until the returned function is called. */
  subscribe(listener: (event: LimiterEvent) => void): () => void;
  /**
   * Refuses new work, gives back what is not used, and leaves the fleet. The policy of the last process to leave a host goes with it; otherwise it
   * counts for one `permitTtl` more. The store's client is the caller's to close, afterwards.
   */
  close(options?: { readonly drain?: boolean }): Promise<void>;
}

/** One key and no host: the verbs of `SharedLimiter` without the target. */
export interface SharedKeyLimiter {
  acquire(options?: AcquireOptions): Promise<SharedPermit>;
  tryAcquire(options?: Pick<AcquireOptions, "cost">): Promise<SharedPermit | undefined>;
  check(): Promise<Decision>;
  record(outcome: Outcome, options?: RecordOptions): Promise<void>;
  run<T>(task: (permit: SharedPermit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T>;
  fetch(input: string | URL | Request, init?: PoliteRequestInit): Promise<Response>;
  /** What the store knows of the key, of all processes; zeros when that is nothing. Rejects with `StoreError` while the store is away. */
  stats(options: { readonly fleet: true }): Promise<FleetStats>;
  stats(options?: { readonly fleet?: false | undefined }): Promise<Stats>;
  stats(options?: StatsOptions): Promise<Stats | FleetStats>;
  explain(): Promise<Explanation>;
  elapsedMs(): Promise<number>;
  isEnabled(): Promise<boolean>;
  pause(duration?: Duration): Promise<void>;
  resume(): Promise<void>;
  cancelWaiting(reason?: unknown): Promise<number>;
  idle(): Promise<void>;
  configure(limits: Limits): Promise<void>;
  reset(what?: ResetWhat): Promise<void>;
  subscribe(listener: (event: LimiterEvent) => void): () => void;
  close(options?: { readonly drain?: boolean }): Promise<void>;
}

/** A limiter that `politely` or `limit` made, with a store or without. */
export type AnyLimiter = Limiter | KeyLimiter | SharedLimiter | SharedKeyLimiter;
