/** What a wait is waiting for. */
export type LimitKind =
  | "minDelay"
  | "rate"
  | "window"
  | "quota"
  | "concurrency"
  | "cooldown"
  | "probe"
  | "headers"
  | "robots"
  | "adaptive"
  | "pause"
  | "queue"
  | "reserved"
  | "closed";

/** One cause of a wait. */
export interface Cause {
  readonly limit: LimitKind;
  /** `"host"`, `"intent"`, `"global"` or a scope's name; `"all"` while everything is paused or closed. */
  readonly scope: string;
  /** The key that is counted: the host, `"global"`, the scope's name; `"*"` while everything is paused or closed. */
  readonly key: string;
  /** Time until this cause alone would let it start; a lower bound where an answer is waited for. */
  readonly waitMs: number;
  /** The cause as a sentence, with numbers. */
  readonly message: string;
  /** What was answered or read to cause it, `"429, Retry-After 30 s"` say. For cooldowns and what headers, robots.txt or `adaptive` ask. */
  readonly because?: string;
}

/** Why a request would wait now. */
export interface Explanation {
  readonly key: string;
  readonly proceed: boolean;
  /** At the earliest. 0 exactly when it may proceed. */
  readonly waitMs: number;
  /** Only an answer can tell: `waitMs` says when to look again. */
  readonly isEstimate?: true;
  /** How many wait in the same lane already. */
  readonly ahead: number;
  /** Where the host's limits come from: `"hosts.example.com"`, `"presets.arxiv"`, `"default"`, `"localhost"`; `"limits"` where `limit` was given them. */
  readonly origin: string;
  /** The most binding first; empty when it may proceed. */
  readonly causes: readonly Cause[];
}

/** Counts of one host, or of all hosts folded together. A copy: it does not change afterwards. */
export interface Stats {
  readonly host: string;
  /** Starts granted or recorded. */
  readonly totalRequests: number;
  /** Those that waited more than 10 ms. */
  readonly delayedRequests: number;
  /** Waits that their callers ended. */
  readonly cancelledRequests: number;
  /** Answers that said "too many requests". */
  readonly throttledRequests: number;
  /** Waits of all granted starts, in milliseconds. */
  readonly totalWaitMs: number;
  /** Total wait divided by the delayed ones; 0 when none was. */
  readonly averageWaitMs: number;
  /** Delayed divided by total; 0 when none. */
  readonly delayRate: number;
  /** From the first start to the last, divided by the number of gaps; 0 before the second. */
  readonly meanIntervalMs: number;
  /** The last start, by the wall clock; absent before the first. */
  readonly lastRequestAt?: Date;
  readonly inFlight: number;
  readonly waiting: number;
  /** How long the host is still to be left alone; 0 when it is not. */
  readonly cooldownMs: number;
  /** Whole and part units in the bucket now, 0 while it owes; absent without a rate. */
  readonly tokens?: number;
  /** The first of `windows`. */
  readonly window?: WindowStats;
  readonly windows: readonly WindowStats[];
  /** The books: asked = granted + refused + cancelled + expired + waiting; granted = released + lapsed + inFlight. */
  readonly asked: number;
  readonly granted: number;
  readonly refused: number;
  readonly cancelled: number;
  readonly expired: number;
  readonly released: number;
  readonly lapsed: number;
  /** How many hosts this row sums up, when it is the row of the folded ones. */
  readonly foldedHosts?: number;
  /** The snake_case keys of the service, and the rest. */
  toJSON(): Record<string, unknown>;
  /** The most important of them, in a shape that does not grow with later versions. */
  toSnapshot(): StatsSnapshot;
}

/** Exactly these seven, as collectors write them to files. Times in whole milliseconds. */
export interface StatsSnapshot {
  readonly domain: string;
  readonly total_requests: number;
  readonly delayed_requests: number;
  readonly total_wait_time_ms: number;
  readonly average_wait_time_ms: number;
  /** ISO 8601, in UTC; null before the first. */
  readonly last_request_time: string | null;
  readonly delay_rate: number;
}

/**
 * What a store knows of one host, of all processes together. A copy: it does not change afterwards.
 *
 * Counts begin when the store last knew nothing of the host: it forgets one a minute or more after nothing of it matters to any limit.
 */
export interface FleetStats {
  readonly host: string;
  /** Starts granted or recorded, without those that were given back unused. */
  readonly totalRequests: number;
  /** Answers that said "too many requests". */
  readonly throttledRequests: number;
  /** The last start. */
  readonly lastRequestAt?: Date;
  /** Places held; absent where no limit keeps places: without `concurrency` and `countFrom: "answer"` nobody knows. */
  readonly inFlight?: number;
  /** Lanes in line at this host, each of one process and with any number of requests in it. Those that another key stops stand in line there. */
  readonly waiting: number;
  /** How long the host is still to be left alone; 0 when it is not. */
  readonly cooldownMs: number;
  /** Whole and part units in the bucket now, 0 while it owes; absent without a rate. */
  readonly tokens?: number;
  /** The first of `windows`. */
  readonly window?: WindowStats;
  readonly windows: readonly WindowStats[];
  /** The same in the snake_case keys of the service. */
  toJSON(): Record<string, unknown>;
}

/** How full a window is. */
export interface WindowStats {
  /** Units inside the window now. */
  readonly calls: number;
  /** Units that may still start now; never below 0. */
  readonly remaining: number;
  /** The window's length. */
  readonly periodMs: number;
  /** Time until the next unit frees; 0 while some remain. */
  readonly nextFreeMs: number;
  /** Time until the oldest call leaves the window; 0 while it holds none. Absent with a store. */
  readonly oldestLeavesMs?: number;
}

/**
 * Something that happened. `atMs` is the limiter's monotonic clock.
 *
 * `cancel`: the caller's signal or `cancelWaiting`. `expire`: a waiter reached its deadline, or a permit its `maxHold`
 * (`what` tells which; a permit's comes with a `warn`). `retry`: a request that failed is sent again after `waitMs`, when the limiter lets it. `evict`: an idle host's statistics were folded away. `warn`: something a person should look at.
 */
export type LimiterEvent =
  | {
      readonly type: "wait";
      readonly key: string;
      readonly atMs: number;
      readonly waitMs: number;
      readonly reason: string;
      readonly ahead: number;
    }
  | {
      readonly type: "grant";
      readonly key: string;
      readonly atMs: number;
      readonly waitedMs: number;
      /** With a store: the instant of the start on the store's timeline, on which the limits are kept. `atMs` is when this process used it. */
      readonly startedAtMs?: number;
      readonly recorded?: true;
    }
  | {
      readonly type: "release";
      readonly key: string;
      readonly atMs: number;
      readonly startedAtMs: number;
      readonly outcome: string;
    }
  | {
      readonly type: "refuse";
      readonly key: string;
      readonly atMs: number;
      readonly code: string;
      readonly waitMs: number;
      readonly reason: string;
    }
  | { readonly type: "cancel"; readonly key: string; readonly atMs: number; readonly waitedMs: number }
  | {
      readonly type: "expire";
      readonly key: string;
      readonly atMs: number;
      readonly what: "waiter" | "permit";
      readonly afterMs: number;
    }
  | {
      readonly type: "cooldown";
      readonly key: string;
      readonly atMs: number;
      readonly untilMs: number;
      readonly step: number;
      readonly because: string;
    }
  | { readonly type: "probe"; readonly key: string; readonly atMs: number }
  | {
      readonly type: "retry";
      readonly key: string;
      readonly atMs: number;
      /** The number of the sending that comes next, 2 or more, and how many there are at most. */
      readonly attempt: number;
      readonly attempts: number;
      /** How long it sleeps before it asks the limiter again. */
      readonly waitMs: number;
      /** What came of the sending before: `"503"`, `"429, Retry-After 30 s"`, `"ECONNRESET"`. */
      readonly because: string;
    }
  | { readonly type: "configure"; readonly key: "*"; readonly atMs: number; readonly summary: string }
  | { readonly type: "pause"; readonly key: string; readonly atMs: number; readonly untilMs: number }
  | { readonly type: "resume"; readonly key: string; readonly atMs: number }
  | { readonly type: "warn"; readonly key: string; readonly atMs: number; readonly message: string }
  | { readonly type: "evict"; readonly key: string; readonly atMs: number }
  | {
      readonly type: "outage";
      readonly key: string;
      readonly atMs: number;
      /** Whether the store is away from now on; false: it is back. */
      readonly isAway: boolean;
      readonly message: string;
    };

/** An event whose instant is still to be read. */
export type UntimedEvent = LimiterEvent extends infer Each
  ? Each extends unknown
    ? Omit<Each, "atMs">
    : never
  : never;
