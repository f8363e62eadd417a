import type { Target } from "politely";
import type { Ticker } from "../../view/ticker.js";
import type { Callers } from "../callers.js";
import type { HeardCooldowns } from "../heardCooldowns.js";
import type { Permits } from "../permits.js";
import type { PolicyBook } from "../policyBook.js";
import type { ServiceLimiter } from "../serviceLimiter.js";
import type { TurnedAway } from "../turnedAway.js";

/** What the routes work with. */
export interface ApiParts {
  readonly limiter: ServiceLimiter;
  readonly permits: Permits;
  readonly callers: Callers;
  readonly turnedAway: TurnedAway;
  readonly book: PolicyBook;
  /** `"memory"`, or the kind of store. */
  readonly store: string;
  /** Cooldowns of all hosts, where the limiter's statistics do not have them: with a store. */
  readonly cooldowns: HeardCooldowns | undefined;
  /** Whether the store answers, or did within the last second. */
  readonly isStoreThere: () => Promise<boolean>;
  /** Whether pauses and limits may be changed. */
  readonly isWritable: boolean;
  /** How many permits may be held or waited for. */
  readonly maxPermits: number;
  readonly ticker: Ticker;
}

/** The fields of a body that say what a request is aimed at. */
export interface TargetBody {
  readonly domain: string;
  readonly intent?: string;
  readonly scopes?: readonly string[];
}

/** The target that a body names. Only the domain: the text itself, which is the quickest. */
export function targetOf({ domain, intent, scopes }: TargetBody): Target {
  if (intent === undefined && scopes === undefined) return domain;
  const aim = domain.includes("://") ? { url: domain } : { host: domain };
  return { ...aim, ...(intent === undefined ? {} : { intent }), ...(scopes === undefined ? {} : { scopes }) };
}
