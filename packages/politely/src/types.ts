/// <reference lib="esnext.disposable" preserve="true" />
import type { Messages } from "./observe/log.js";
import type { Explanation, LimiterEvent, Stats } from "./observe/types.js";
import type { Limits, PolicyInput } from "./policy/types.js";

/** A length of time: milliseconds as a number, or a number with a unit, `"1.5s"`, `"2m"`, `"2min"`, `"1h"`, `"1d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "min" | "h" | "d"}`;

/** A count per time: `"60/min"`, `"1/3s"`, `"0.5/s"`, or the same as an object. */
export type Rate = `${number}/${string}` | { readonly count: number; readonly per: Duration };

/**
 * What a request is aimed at: a host name, a URL, or an object with more detail.
 *
 * Host names are compared lower-case, in their ASCII form, without a trailing dot. The port is not part of the key
 * unless a rule of the policy names it.
 */
export type Target =
  | string
  | URL
  | {
      readonly url?: string | URL;
      readonly host?: string;
      /** What the request is for, `"search"` say. Limits under `intents` of the host's rule come on top of the host's own. */
      readonly intent?: string;
      /** Further keys that are counted too: `"proxy:berlin"`, `"key:abc"`. Each must match an entry of `scopes` in the policy. */
      readonly scopes?: readonly string[];
    };

/** How one request wants to wait. */
export interface AcquireOptions {
  /** Aborting it ends the wait at once; the promise rejects with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
  /** The longest this request may wait. Default: the smallest `maxWait` of the limits that apply, else no bound. 0 means never wait. */
  readonly maxWait?: Duration | undefined;
  /** Higher goes first; a waiter gains one for each `ageing` (10 s) it has waited. Default 0. */
  readonly priority?: number | undefined;
  /**
   * Units to take from rate, window and quota: a whole number from 1 to 10,000,000. Default 1.
   *
   * A record sets it by name: a scope (`"host"`, `"intent"`, `"global"` or one of the target's scopes), or a kind of
   * limit (`"rate"`, `"window"`, `"quota"`). A scope's entry beats a kind's; what is not named costs 1.
   */
  readonly cost?: number | Readonly<Record<string, number>> | undefined;
}

/** A `fetch` with classes of its own for requests and responses. It has no signature here, so that a function that is written in place has the platform's types. */
export interface OtherFetch {
  readonly name: string;
  readonly length: number;
  bind(self: undefined): unknown;
}

/** How one call of `fetch` is paced. */
export interface FetchOptions extends Omit<AcquireOptions, "signal"> {
  /** What the request is for. Limits under `intents` of the host's rule come on top of the host's own. */
  readonly intent?: string | undefined;
  /** Further keys that are counted too; each must match an entry of `scopes` in the policy. */
  readonly scopes?: readonly string[] | undefined;
  /** The longest from the grant to the last byte; time in the queue does not count. Then it fails with a `TimeoutError`. Default: no bound. */
  readonly timeout?: Duration | undefined;
}

/** What `fetch` takes, and how the limiter should treat it. */
export interface PoliteRequestInit extends RequestInit {
  /** For the limiter; the platform never sees it. */
  readonly politely?: FetchOptions | undefined;
}

/** How a request ended, in one word. `"unused"` means it was never sent. */
export type OutcomeKind = "success" | "rate_limited" | "server_error" | "timeout" | "unused";

/** Headers in any usual form: a `Headers` object, or a plain record with names in any case. */
export type HeadersLike =
  | { get(name: string): unknown }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** How a request ended. A `Response` fits. */
export type Outcome =
  | OutcomeKind
  | {
      readonly kind: OutcomeKind;
      /** How long the site asked to stay away. 0, negative or not a number counts as absent. */
      readonly retryAfterMs?: number;
      /** How long the site took to answer, for `adaptive`. Default: from the grant to this report. */
      readonly latencyMs?: number;
      /** Hold this scope instead of the host. */
      readonly scope?: string;
      /** What happened, for people: `"ECONNRESET"` say. Shown where the answer makes others wait. */
      readonly because?: string;
    }
  | {
      readonly status: number;
      readonly headers?: HeadersLike;
      readonly latencyMs?: number;
      /** The answer speaks of this scope instead of the host. */
      readonly scope?: string;
    };

/** Settles a permit. */
export interface ReleaseOptions {
  /** The true cost where the one given to `acquire` was an estimate: a whole number from 0. What was too much is given back, what was too little is owed. */
  readonly cost?: number | Readonly<Record<string, number>>;
}

/** A granted start that has not been released yet. */
export interface Permit extends Disposable {
  /** The key that was counted: the normalised host, or what stands for it. */
  readonly key: string;
  /** When it was granted, on the limiter's monotonic clock, in milliseconds with microsecond resolution. */
  readonly startedAtMs: number;
  /** How long it waited in its lane. */
  readonly waitedMs: number;
  /** Fencing number of a shared grant; absent in one process. */
  readonly token?: number | undefined;
  /**
   * Gives the place back and reports the answer. Only the first call counts.
   *
   * `"unused"` gives back what was taken as well: all of it for windows and quotas, for gap and bucket as much as the
   * other starts allow. Without an outcome nothing is learned.
   */
  release(outcome?: Outcome, options?: ReleaseOptions): void;
  /**
   * Reports the answer while the place is kept: a 429 holds the host as soon as its headers are there, though the body
   * goes on. Release without an outcome afterwards, or with the same answer: it counts once. Does nothing once released; `"unused"` is for `release` only.
   */
  report(outcome: Outcome): void;
}

/** The answer of `check`. `waitMs` is 0 exactly when `proceed` is true; else whole milliseconds, rounded up, so that a timer set by it does not come early. */
export interface Decision {
  readonly proceed: boolean;
  readonly waitMs: number;
  /** Why it would wait, in a sentence. Absent when it may proceed. */
  readonly reason?: string;
  /** Only an answer can tell, that of a probe or of a request in flight: `waitMs` says when to look again, a quarter of a second at most where nothing else stops it. */
  readonly isEstimate?: true;
}

/** Where time comes from. All instants are of one timeline. */
export interface Clock {
  /** Monotonic milliseconds; fractions allowed. */
  now(): number;
  /** Milliseconds since 1970, for dates and calendar quotas only. */
  wall(): number;
  /**
   * Calls `fn` once at about `atMs` of `now()`. Early or late is allowed: the limiter looks again.
   *
   * `slackMs` says how much later costs nothing, since a bucket saves up meanwhile; it may be ignored. Absent means that every moment counts.
   */
  setTimer(atMs: number, fn: () => void, slackMs?: number): unknown;
  /** Ends what `setTimer` gave. One that has called already, or was cleared before, is let be. */
  clearTimer(timer: unknown): void;
  /** Lets the process end although this timer is pending. May be absent. */
  unref?(timer: unknown): void;
  /** By how much the platform's own timers may call before their time; `check` adds it to its waits. Default 0. */
  readonly earlyMs?: number;
}

/** Where log lines go; `console` fits. A logger that throws is ignored. */
export interface Logger {
  debug?(message: string): void;
  info?(message: string): void;
  warn?(message: string): void;
}

/** How a limiter works inside, beside its policy. */
export interface LimiterOptions {
  /** Default: the machine's monotonic clock with sharp wake-ups. Tests pass a `VirtualClock`. */
  readonly clock?: Clock | undefined;
  /** Default: no log. */
  readonly logger?: Logger | undefined;
  /** The lines of the log, for a program that logs in its own language. What is left out is said in English. */
  readonly messages?: Messages | undefined;
  /** How many keys may owe time or be kept at once. Default 1,000,000, at most 8,388,608. While as many owe time, a host that is neither known nor named in the policy is refused with `CapacityError`. */
  readonly maxKeys?: number | undefined;
  /** How many idle hosts keep their statistics. Default 100,000. Older ones are folded into one row. 0 keeps no statistics per host. */
  readonly keepStats?: number | undefined;
  /** The wait that is worth one point of priority, and after which a waiter reserves its scopes. Default 10 s. */
  readonly ageing?: Duration | undefined;
  /** Numbers from 0 up to but not including 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /**
   * What sends the requests of `fetch`: another `fetch`, also that of undici or node-fetch, whose types differ from the platform's. It is given
   * what `fetch` is given. Default the global `fetch` at the time of each call.
   */
  readonly fetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | OtherFetch | undefined;
  /** Given, every answer is a promise: see `SharedOptions`. */
  readonly store?: never;
}

/** What `reset` forgets. `"pacing"`: gap, rate and windows. `"stats"`: the statistics. `"all"`: these, quotas, cooldowns and pauses too. */
export type ResetWhat = "pacing" | "stats" | "all";

/** How `record` places a request in time. */
export interface RecordOptions {
  /** When it started, on the limiter's clock. Default now; later than now counts as now. */
  readonly startedAtMs?: number;
}

/** Paces requests to any number of hosts, with the state in this process. */
export interface Limiter {
  /**
   * Waits its turn, then grants. Never throws; rejects with `signal.reason` on abort, `DeadlineError` when it cannot start within `maxWait`,
   * `QueueFullError`, `CapacityError`, `ClosedError`, and `TypeError` or `RangeError` for a target or option that makes no sense.
   */
  acquire(target: Target, options?: AcquireOptions): Promise<Permit>;
  /** Grants if a start is possible at this moment and nobody waits for the same; else returns undefined and takes nothing. Throws on bad input and after `close`. */
  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Permit | undefined;
  /** Tells whether a start is possible now, and if not, how long to wait. Takes nothing; those already waiting are ahead. */
  check(target: Target): Decision;
  /** Counts a request made without a permit as a start and reports its answer. It is counted even where no limit had room for it. */
  record(target: Target, outcome: Outcome, options?: RecordOptions): void;
  /**
   * Acquires, runs `task`, releases. A task that returns a `Response` (anything with a numeric `status` or `statusCode`, or with a `response` that has one)
   * reports it; any other return is a success. A task that throws reports the status of its error in the same way, else nothing; the error is passed on.
   */
  run<T>(target: Target, task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /** Makes the same function, paced: with its `this`, name and number of arguments. `target` may be a function of its arguments. */
  wrap<This, Args extends unknown[], T>(
    target: Target | ((...args: Args) => Target),
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T>;
  /**
   * The standard `fetch`, paced: waits its turn at the host of the URL, reads what the site answers, and keeps its place until the
   * last byte has arrived. Node's own `fetch` also waits at the host of each redirect. `init.politely` says how it waits.
   *
   * Up to 1 MiB of a body comes in without a reader, so that a small one frees its place by itself; a larger one gives it back
   * once nobody has read from it for 5 s. Rejects as `fetch` and `acquire` do, and with `RobotsError`.
   */
  fetch(input: string | URL | Request, init?: PoliteRequestInit): Promise<Response>;
  /** A copy of one host's statistics; undefined when it was never seen, or folded away. */
  stats(target: Target): Stats | undefined;
  /** Up to 10,000 kept hosts in order of first use, and one row that adds up all others, if there are any. All at one moment; `eachStats` reads every host. */
  stats(): Stats[];
  /**
   * The same rows, each made when it is asked for and as the host is then: take some, let others have their turn, go on. A host whose `evict` is told
   * after its row is in the row of the folded ones as well; one that comes meanwhile may be left out.
   */
  eachStats(): IterableIterator<Stats>;
  /** Says why a request would wait now, the most binding cause first. */
  explain(target: Target): Explanation;
  /** Milliseconds since the last start; Infinity before the first. */
  elapsedMs(target: Target): number;
  /** Whether anything limits requests to it: false for an entry with `enabled: false`, and for localhost unless the policy names it. */
  isEnabled(target: Target): boolean;
  /** Holds one host, or all, for `duration` or until `resume`. What is in flight goes on. */
  pause(target?: Target, duration?: Duration): void;
  /** Ends a pause; without a target, every pause. A cooldown goes on. */
  resume(target?: Target): void;
  /** Rejects everybody waiting for one host, or all, with `reason`; returns how many. */
  cancelWaiting(target?: Target, reason?: unknown): number;
  /** Resolves once nobody waits, nothing is in flight and nothing that failed is to be sent again, at one host or at all. A permit that is never released counts until it lapses: after `maxHold`, or where no limit counts places, once its key has not started for `maxHold`. */
  idle(target?: Target): Promise<void>;
  /** Replaces the policy. It applies to everybody queued at once and forgives no debt. A bad policy throws `PolicyError` and changes nothing; so does one that counts hosts together in another way (`groupBy`, a preset's hosts). */
  configure(policy: PolicyInput): void;
  /** Forgets the state of one host, or all. Default `"pacing"`. */
  reset(target?: Target, what?: ResetWhat): void;
  /** Calls `listener` for every event until the returned function is called. A listener that throws is ignored. */
  subscribe(listener: (event: LimiterEvent) => void): () => void;
  /** Refuses new work. Those waiting are rejected with `ClosedError`, or with `drain` served first. Resolves when nobody waits any more. */
  close(options?: { readonly drain?: boolean }): Promise<void>;
}

/** One key and no host: the verbs of `Limiter` without the target. */
export interface KeyLimiter {
  acquire(options?: AcquireOptions): Promise<Permit>;
  tryAcquire(options?: Pick<AcquireOptions, "cost">): Permit | undefined;
  check(): Decision;
  record(outcome: Outcome, options?: RecordOptions): void;
  run<T>(task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T>;
  /** The standard `fetch`, paced by this key whatever the host. */
  fetch(input: string | URL | Request, init?: PoliteRequestInit): Promise<Response>;
  /** Zeros before the first request. */
  stats(): Stats;
  explain(): Explanation;
  elapsedMs(): number;
  isEnabled(): boolean;
  pause(duration?: Duration): void;
  resume(): void;
  cancelWaiting(reason?: unknown): number;
  idle(): Promise<void>;
  configure(limits: Limits): void;
  reset(what?: ResetWhat): void;
  subscribe(listener: (event: LimiterEvent) => void): () => void;
  close(options?: { readonly drain?: boolean }): Promise<void>;
}
