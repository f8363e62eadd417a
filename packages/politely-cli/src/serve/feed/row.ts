/** How a host stands. The first of these that fits: paused, cooling, waiting, flowing, idle. */
export type HostState = "flowing" | "waiting" | "cooling" | "paused" | "idle";

/** One host as the dashboard shows it. Instants are milliseconds since 1970. */
export interface HostRow {
  readonly domain: string;
  readonly state: HostState;
  /** Requests in its lane. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Starts, since the service began. */
  readonly total: number;
  /** Answers that said "too many requests". */
  readonly throttled: number;
  /** Starts a second over the last ten whole seconds, or since the first start where that is less. */
  readonly perSecond: number;
  /** What gap, rate and windows allow in the long run, the tightest of them; null where none of them limits it. */
  readonly allowedPerSecond: number | null;
  /** Time until the next start at the earliest, from the moment the row was made; null where nobody waits or it is not known. */
  readonly nextStartMs: number | null;
  /** What the next start waits for, as a sentence. */
  readonly reason: string | null;
  /** End of the cooldown or pause; null where there is none, or the pause has no end. */
  readonly until: number | null;
  /** The last start. */
  readonly lastAt: number | null;
  /** The limits in words. */
  readonly limits: string;
}

/** Everything together. */
export interface FeedTotals {
  /** Starts since the service began. */
  readonly starts: number;
  /** Starts a second over the last 10 s. */
  readonly perSecond: number;
  readonly throttled: number;
  readonly waiting: number;
  readonly inFlight: number;
  /** How many hosts stand how. */
  readonly hosts: Readonly<Record<HostState, number>>;
}

/** The last two minutes of one host, or of all, second by second; the last second is the one under way. */
export interface Timeline {
  /** The beginning of the first second, in milliseconds since 1970. */
  readonly fromMs: number;
  readonly stepMs: 1000;
  readonly starts: readonly number[];
  /** Answers that said "too many requests". */
  readonly throttled: readonly number[];
  /** As in `HostRow`. For all hosts: the sum over those not idle, at most what `global` allows; null where one of them has no limit. */
  readonly allowedPerSecond: number | null;
}

/** The states in the order in which a person wants to see them. */
export const HOST_STATES: readonly HostState[] = ["cooling", "paused", "waiting", "flowing", "idle"];
