import type { Duration } from "politely";

/** What a plan takes for granted. */
export interface PlanOptions {
  /** How long every answer takes, from 0 to 10 minutes. Default 200 ms. */
  readonly latency?: Duration | undefined;
  /** How many requests may be in flight at once, over all hosts. Default: as many as the policy allows. */
  readonly concurrency?: number | undefined;
  /** What the calendar shows at the beginning, in milliseconds since 1970. Default now. Only quotas look at it. */
  readonly wallMs?: number | undefined;
  /** Whether to find out what one more request a second would save, which may take as long again. Default true. */
  readonly hasWhatIf?: boolean | undefined;
}

/** When everything is done, and what makes it take so long. Times are milliseconds from the beginning. */
export interface Plan {
  readonly requests: number;
  /** When the last answer is there. */
  readonly durationMs: number;
  /** The end lies more than 100 years ahead: it is extrapolated from the pace until then. */
  readonly isEstimate: boolean;
  readonly latencyMs: number;
  /** The bound on requests in flight that was asked for; undefined for none. */
  readonly concurrency: number | undefined;
  /** The slowest first, then by name. */
  readonly hosts: readonly HostPlan[];
  /** The host that is done last. Undefined for a plan without requests. */
  readonly longPole: LongPole | undefined;
}

/** One host of a plan. */
export interface HostPlan {
  readonly key: string;
  readonly requests: number;
  readonly endsAtMs: number;
  /** Where its limits come from: `"hosts.example.com"`, `"presets.arxiv"`, `"default"`, `"localhost"`. */
  readonly origin: string;
  /** What it waits for most; undefined when it never waits. */
  readonly binds: Binding | undefined;
  /** When its requests start. Shorter than `requests` where the end is an estimate. Shared with other hosts: do not write. */
  readonly starts: Float64Array;
}

/** What a host waits for. */
export interface Binding {
  /** `"global"`: the budget of all hosts together. */
  readonly scope: "host" | "global";
  /** In words: `rate 1/s`, `concurrency 4`. */
  readonly text: string;
  /** Where it comes from, when that is not where the host's own limits do: `"scopes.preset:arxiv"`. */
  readonly origin?: string;
  /** All waits between its starts for this limit together. */
  readonly waitMs: number;
}

/** How far planning is, in requests. */
export interface PlanProgress {
  readonly planned: number;
  /** An upper bound. */
  readonly toPlan: number;
}

/** The host that is done last, and what would help. */
export interface LongPole {
  readonly key: string;
  /** How many others are done at the same moment. */
  readonly ties: number;
  /** Undefined when nothing limits it, or when nobody asked. */
  readonly whatIf: WhatIf | undefined;
}

/** What becomes of a plan when the limit that holds back its last host has room for one more request a second. */
export interface WhatIf {
  /** Whose limits are loosened: those of the host, or the budget of all hosts together. */
  readonly scope: "host" | "global";
  readonly durationMs: number;
  readonly savedMs: number;
  /** Which host is done last then. */
  readonly thenLast: string;
  /** It was not played through but worked out from the pace of the limits: more than 250,000 requests share a budget. */
  readonly isEstimate: boolean;
}
