import type {
  AcquireOptions,
  Decision,
  Duration,
  Explanation,
  LimiterEvent,
  Outcome,
  PolicyInput,
  Stats,
  Target,
} from "politely";

/** A value now, or a promise of it. */
export type Soon<T> = T | Promise<T>;

/** A granted start as the service holds it. Permits in memory and with a store both fit; await what they answer. */
export interface ServicePermit {
  readonly key: string;
  readonly waitedMs: number;
  readonly startedAtMs: number;
  /** With a store: when its place was found gone, at `maxHold`, on the limiter's clock. Undefined while it has one, and in memory. */
  readonly lapsedAtMs?: number | undefined;
  report(outcome: Outcome): Soon<void>;
  release(outcome?: Outcome): Soon<void>;
}

/** What the service asks of a limiter. One in memory and one with a store both fit; every answer but `subscribe`'s may be a promise. */
export interface ServiceLimiter {
  acquire(target: Target, options?: AcquireOptions): Promise<ServicePermit>;
  check(target: Target): Soon<Decision>;
  record(target: Target, outcome: Outcome): Soon<void>;
  explain(target: Target): Soon<Explanation>;
  stats(target: Target): Soon<Stats | undefined>;
  stats(): Soon<Stats[]>;
  eachStats(): Iterable<Stats>;
  pause(target?: Target, duration?: Duration): Soon<void>;
  resume(target?: Target): Soon<void>;
  configure(policy: PolicyInput): Soon<void>;
  subscribe(listener: (event: LimiterEvent) => void): () => void;
  close(options?: { readonly drain?: boolean }): Promise<void>;
}
