import type { Duration, HostLimits, Limits, PolicyInput } from "politely";

/** What `politely get` was asked to do. */
export interface GetOptions {
  /** URLs, files with URLs, `-` for stdin. */
  readonly args: readonly string[];
  readonly policy: PolicyInput;
  /** Folder of the bodies, the index and the journal; relative to the working directory. */
  readonly out: string;
  /** `redis://…`, `postgres://…` or a file: the list and the limits are shared with all who name the same. */
  readonly share?: string;
  /** Which list of that store. Default `"default"`. */
  readonly list?: string;
  /** Requests of this process that may be in flight at once. Default 32. */
  readonly concurrency?: number;
  /** Whether robots.txt is obeyed, unless the policy says that it is not. Default true. */
  readonly isRobots?: boolean;
  /** Default: that of the policy, else `politely`. */
  readonly userAgent?: string;
  /** How often a failed request is sent again. Default: what the policy says, else twice. */
  readonly retry?: number;
  /** The longest one request may wait for its turn. Default: what the policy says. */
  readonly maxWait?: Duration;
  /** The longest silence of a site, in milliseconds; a body that comes slower than 10 bytes a second for as long counts as that. Default 60 s. */
  readonly timeoutMs?: number;
  /** The largest body that is kept. One that is larger is broken off, and its URL is refused. Default 1 GiB. */
  readonly maxBytes?: number;
  /** Ask for finished URLs again, with conditional requests. Default: when nothing else is left to do, and never with `share`. */
  readonly isRefresh?: boolean;
  /** With `share`: how long after its last sign of life a worker's URLs are handed out again, in milliseconds. Default 30 s. */
  readonly leaseMs?: number;
  /** One line of JSON on stdout for each finished URL, and the summary at the end. Default false. */
  readonly isJson?: boolean;
}

/** The scope that bounds how many requests of one process are in flight. */
export const WORKER_SCOPE = "politely-get:";

/** Every page may be sent as often as was asked for, however many of its host fail: their pace is bounded by limits, backoff and cooldown. */
const UNBOUNDED = { share: 100, perMinute: 1_000_000 } as const;

/** The policy that the limiter gets: what was written, and what the command line adds. */
export function policyOf(options: GetOptions): PolicyInput {
  const { policy, concurrency = 32, isRobots = true, userAgent, retry } = options;
  const { http = {}, scopes = {}, hosts = {}, default: others, global } = policy;
  return {
    ...policy,
    default: others === undefined ? undefined : withoutBound(others),
    hosts: withoutBounds(hosts),
    global: global === undefined ? undefined : withoutBound(global),
    scopes: { ...withoutBounds(scopes), [`${WORKER_SCOPE}*`]: { concurrency } },
    http: {
      ...http,
      userAgent: userAgent ?? http.userAgent ?? "politely",
      robots: isRobots ? (http.robots ?? true) : false,
      retry: {
        budget: UNBOUNDED,
        ...http.retry,
        attempts: retry === undefined ? (http.retry?.attempts ?? 3) : retry + 1,
      },
    },
  };
}

/** Whether a URL that would wait too long is given up, by the command line or by the policy. */
export function hasDeadlines({ policy, maxWait }: GetOptions): boolean {
  const { default: others, hosts = {}, global } = policy;
  return [{ maxWait }, others, global, ...Object.values(hosts)].some((limits) => limits?.maxWait !== undefined);
}

/** The list waits in the journal, and of each host no more than 16 URLs in the limiter: a bound on those would only make some of them fail. */
function withoutBound<Given extends Limits>(limits: Given): Given {
  return { ...limits, maxQueue: undefined };
}

function withoutBounds(entries: Readonly<Record<string, HostLimits>>): Record<string, HostLimits> {
  return Object.fromEntries(Object.entries(entries).map(([name, limits]) => [name, withoutBound(limits)]));
}
