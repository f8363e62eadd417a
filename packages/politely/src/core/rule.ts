/** The longest time anywhere, in microseconds: 100 years. Added to any instant it is still exact. */
export const maxDurationUs = 36_525 * 86_400_000_000;

/**
 * One entry of a policy, made ready for arithmetic: whole microseconds and whole units, with every default filled in.
 *
 * A number that stands for "no such limit" is said at each field, so that hot code compares instead of branching on undefined.
 */
export interface Rule {
  /** False: the entry limits nothing, and answers hold nothing. */
  readonly enabled: boolean;
  /** 0: no gap. */
  readonly gapUs: number;
  /** Units that come back each `ratePerUs`, as a fraction in lowest terms. 0: no bucket. */
  readonly rateCount: number;
  readonly ratePerUs: number;
  /** Units the bucket holds. 1 where there is no bucket. `burst * ratePerUs` is at most 2^53 - 1. */
  readonly burst: number;
  readonly windows: readonly WindowRule[];
  readonly quota: QuotaRule | undefined;
  /** Infinity: no bound. */
  readonly concurrency: number;
  /** Gap and windows run from the answer. */
  readonly fromAnswer: boolean;
  readonly backoff: BackoffRule;
  /** The ladder after a 429 without Retry-After; at least one step, the last one repeats. */
  readonly cooldownUs: readonly number[];
  /** Infinity: no bound. */
  readonly maxWaitUs: number;
  /** Infinity: no bound. */
  readonly maxQueue: number;
  readonly maxHoldUs: number;
  /** The headers of an answer hold nobody for longer; undefined for the default of a day. */
  readonly maxRetryAfterUs?: number | undefined;
  /** With a store: how long a place is kept for a process that gives no sign of life. */
  readonly permitTtlUs: number;
  /** Undefined: answers change nothing but cooldowns. */
  readonly adaptive: AdaptiveRule | undefined;
  /** The rule of which this is one process's part, while a store is away. */
  readonly whole?: Rule | undefined;
  /** As written in the policy, for messages: `"1/s"`, burst and all. */
  readonly text: RuleText;
}

/** At most `count` units in every interval of `perUs`. */
export interface WindowRule {
  readonly count: number;
  readonly perUs: number;
  /** Starts are counted as if at the next multiple of this; 1 for an exact window, `ceil(perUs / 1024)` above 4,096 units. */
  readonly grainUs: number;
}

/** A budget that resets on the calendar. */
export interface QuotaRule {
  readonly count: number;
  readonly per: "hour" | "day" | "month";
  readonly timeZone: string;
}

/** How long to stay away after the n-th failure in a row: `base * n` or `base * 2^(n-1)`, at most `max`, lengthened by up to `jitter` of itself. */
export interface BackoffRule {
  readonly kind: "none" | "linear" | "exponential";
  readonly baseUs: number;
  readonly maxUs: number;
  /** 0: none. 0.5: up to half as long again. */
  readonly jitter: number;
}

/** How far a key may be slowed down by what its site answers. */
export interface AdaptiveRule {
  /** The mean time between starts that gap, rate and windows allow, whichever is longest: full speed. 0: they allow any. */
  readonly baseUs: number;
  /** The longest gap that may be asked for. 0: 64 times the base, at most a minute. Never counts below the base. */
  readonly slowestUs: number;
}

/** How each limit was written, for reasons people read. Undefined where it is not set. */
export type RuleText = Readonly<Record<"minDelay" | "rate" | "quota" | "concurrency", string | undefined>> & {
  readonly windows: readonly string[];
};
