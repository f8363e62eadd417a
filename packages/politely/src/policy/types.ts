import type { Rule } from "../core/rule.js";
import type { Duration, Rate, Target } from "../types.js";

/** What one host, one intent, one scope or everything together may do. All limits given apply at once. */
export interface Limits {
  /** `false` turns the limits of this entry off. Default true. */
  readonly enabled?: boolean | undefined;
  /** The least time between two starts. 0 means none. */
  readonly minDelay?: Duration | undefined;
  /** A token bucket, full at the start. */
  readonly rate?: Rate | undefined;
  /** How many units the bucket holds: a whole number from 1. Default 1. Needs `rate`. */
  readonly burst?: number | undefined;
  /** Exact sliding windows. Above 4,096 starts per window they are grouped: never over, late by at most a 1,024th of the period. */
  readonly window?: Rate | readonly Rate[] | undefined;
  /** A budget that resets on the calendar of `timeZone` (default UTC). */
  readonly quota?:
    | { readonly count: number; readonly per: "hour" | "day" | "month"; readonly timeZone?: string | undefined }
    | undefined;
  /** How many may be in flight at once: a whole number from 1. */
  readonly concurrency?: number | undefined;
  /** Whether gap and windows run from a start or from its answer. Default `"start"`. */
  readonly countFrom?: "start" | "answer" | undefined;
  /** How long to stay away after server errors and timeouts. Default linear: 5, 10, … 30 s. Exponential: 5, 10, 20, 40, 60 s. */
  readonly backoff?:
    | "none"
    | "linear"
    | "exponential"
    | {
        readonly kind: "none" | "linear" | "exponential";
        readonly base: Duration;
        readonly max: Duration;
        /** Lengthens each step by up to this part of it, from 0 to 1. Default 0. */
        readonly jitter?: number | undefined;
      }
    | undefined;
  /** How long to stay away after a 429 without Retry-After. A list is a ladder. Default 60 s. */
  readonly cooldown?: Duration | readonly Duration[] | undefined;
  /** Slow down by what the site answers and how long it takes, never above the other limits. `min` and `max` bound the rate this leads to. Default false. */
  readonly adaptive?: boolean | { readonly min?: Rate | undefined; readonly max?: Rate | undefined } | undefined;
  /** The longest a request may wait in its lane. Default: no bound; 0 means never wait. */
  readonly maxWait?: Duration | undefined;
  /** How many requests may wait; 0 means none. Default 100,000 for a host; no bound for an intent, a scope and `global`. */
  readonly maxQueue?: number | undefined;
  /** With a store: lifetime of a place. Default 30 s. */
  readonly permitTtl?: Duration | undefined;
  /** A permit not released by then gives its place back, with an event. Default 10 min. */
  readonly maxHold?: Duration | undefined;
  /** The headers of an answer hold nobody for longer; longer wishes of a site are cut to this, with a `warn` event. Default 1 day. */
  readonly maxRetryAfter?: Duration | undefined;
}

/** The limits of a host, with further ones for what its requests are for. */
export interface HostLimits extends Limits {
  /** Taken on top of the host's limits by requests that name the intent. */
  readonly intents?: Readonly<Record<string, Limits>> | undefined;
}

/** The limits of one domain as some configurations write them: a token bucket. `limit` and `loadPolicy` take it. */
export interface DomainLimits {
  readonly requests_per_second: number;
  readonly burst_capacity: number;
}

/** How HTTP requests are made by `fetch` and the clients that are made polite. */
export interface HttpPolicy {
  /** Names the program, `"NewsArchive/2.1"` say. Sent as User-Agent by requests that have none of their own. */
  readonly userAgent?: string | undefined;
  /** How the site can reach you: an e-mail address or a page. It is put behind the User-Agent; without one, behind `politely`. */
  readonly contact?: string | undefined;
  /** Whether robots.txt is obeyed. Default false. `userAgent` is the name looked for there; default that of `http`. `maxAge` is how long one is kept; default and at most a day. */
  readonly robots?:
    | boolean
    | { readonly userAgent?: string | undefined; readonly maxAge?: Duration | undefined }
    | undefined;
  /** Whether failed requests are sent again. Default: never. */
  readonly retry?: RetryPolicy | undefined;
  /** A Crawl-delay or Request-rate that asks for more than this between starts counts as this, with a warning. Default 60 s. */
  readonly maxCrawlDelay?: Duration | undefined;
  /** What `fetch` gives when the limiter refuses a request (deadline, full queue, too many hosts): its error, or a 429 `Response` of our own with `retry-after`, for clients that only understand answers. Default `"error"`. */
  readonly refusal?: "error" | "response" | undefined;
}

/** When a failed request is sent again. Each time it goes through the limiter like any other. */
export interface RetryPolicy {
  /** How often a request is sent at most, the first time included. */
  readonly attempts: number;
  /** Which methods may be sent again. Default the safe ones: GET, HEAD, OPTIONS, TRACE. */
  readonly methods?: readonly string[] | undefined;
  /** The longest wait before it is sent again; if it would be longer, the last answer is returned. Default: no bound. */
  readonly maxWait?: Duration | undefined;
  /** The least wait before the first repetition; it doubles each time, up to a minute. Default 1 s. What the site asks for comes on top only where it is longer. */
  readonly delay?: Duration | undefined;
  /** Lengthens that wait by up to this part of itself, at random. Default 0.25. */
  readonly jitter?: number | undefined;
  /** How many repetitions a host gets: a share of its requests, and so many a minute on top. Default 0.2 and 10. */
  readonly budget?: { readonly share?: number | undefined; readonly perMinute?: number | undefined } | undefined;
}

/** The `http` part of a policy, made ready. */
export interface HttpRules {
  /** The whole User-Agent, contact included. */
  readonly userAgent: string | undefined;
  readonly contact: string | undefined;
  readonly robots: RobotsRules | undefined;
  readonly retry: RetryRules | undefined;
  readonly maxCrawlDelayMs: number;
  readonly refusal: "error" | "response";
}

/** How robots.txt is obeyed. */
export interface RobotsRules {
  /** The name looked for. */
  readonly userAgent: string;
  readonly maxAgeMs: number;
}

/** `RetryPolicy`, made ready. */
export interface RetryRules {
  readonly attempts: number;
  readonly methods: readonly string[];
  readonly maxWaitMs: number;
  readonly delayMs: number;
  readonly jitter: number;
  readonly budgetShare: number;
  readonly budgetPerMinute: number;
}

/** Which limits apply where. */
export interface PolicyInput {
  /** Hosts not named. Default: rate 1/s. */
  readonly default?: Limits | undefined;
  /** By host name, `"*.x.org"` for its subdomains (each on its own). The most specific wins and replaces `default` whole. */
  readonly hosts?: Readonly<Record<string, HostLimits>> | undefined;
  /** Over everything together. */
  readonly global?: Limits | undefined;
  /** Taken too when a target names them; `"proxy:*"` stands for every name with that beginning, each on its own. */
  readonly scopes?: Readonly<Record<string, Limits>> | undefined;
  /** What counts as one key. Default `"host"`. `"domain"` is for policy files, and needs `import "politely/domains"` somewhere in the program; in code pass `byDomain` of that entry. */
  readonly groupBy?: "host" | "domain" | ((url: URL) => string) | undefined;
  /** Whether requests to this machine are paced. Default `"unlimited"`, unless `hosts` names it. */
  readonly localhost?: "unlimited" | "limited" | undefined;
  /** Known sites' published limits: all of them but those of low confidence, or the ones named. Your own entry beats a preset. */
  readonly presets?: true | readonly string[] | undefined;
  readonly http?: HttpPolicy | undefined;
}

/** A host's rule, with where it came from. */
export interface HostRule {
  readonly rule: Rule;
  /** `"hosts.example.com"`, `"hosts.*.x.org"`, `"presets.arxiv"`, `"default"`, `"localhost"` or `"limits"`. */
  readonly origin: string;
  readonly intents: ReadonlyMap<string, Rule>;
  /** Scopes that each of its requests takes, named or not. */
  readonly scopes?: readonly string[] | undefined;
  /** Exempt from everything, `global` too: a localhost the policy does not name. */
  readonly exempt: boolean;
}

/** A target, taken apart and normalised. */
export interface ResolvedTarget {
  readonly key: string;
  readonly intent: string | undefined;
  readonly scopes: readonly string[];
  /** The URL or host that a grouping made the key of, so that another policy can make another one of it. Undefined elsewhere. */
  readonly asked?: string;
}

/** Something a person should know about a policy that is not an error. */
export interface PolicyWarning {
  readonly path: string;
  readonly message: string;
  /** It is about a field that only a store gives a meaning. */
  readonly isForStore?: boolean;
}

/** A policy made ready: every question the scheduler has about it. */
export interface CompiledPolicy {
  /** The rule of a normalised key. The same object for the same entry every time. */
  hostRule(key: string): HostRule;
  /** The rule shared by hosts beyond `maxKeys`. */
  readonly overflow: HostRule;
  /** The rule of a scope name; undefined when no entry matches. */
  scopeRule(name: string): Rule | undefined;
  readonly global: Rule | undefined;
  /** Takes a target apart. Throws `TypeError` naming what is wrong with it. */
  resolve(target: Target): ResolvedTarget;
  /** True when a normalised host is its own key, so that a known key given as a target needs no work (no custom `groupBy`). */
  readonly hostIsKey: boolean;
  /** What makes keys of URLs, where hosts are not their own keys. */
  readonly groupBy: ((url: URL) => string) | undefined;
  /** What decides which hosts a preset counts together: host patterns, each with the scope that counts them, or with none. */
  readonly together: ReadonlyMap<string, string>;
  /** Whether anything limits a target: at its host, its intent, one of its scopes, or everything together. */
  isEnabled(target: Target): boolean;
  /** How HTTP requests are made. */
  readonly http: HttpRules;
  /** The preset of a key whose site wants to know how to reach the caller; undefined for others. */
  contactWantedBy(key: string): string | undefined;
  /** Things a person should know that are not errors, each with its path. */
  readonly warnings: readonly PolicyWarning[];
}
