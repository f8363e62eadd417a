import type { LogRecord } from "./server.js";

const secondMs = 1_000;
const tooManyRequests = 429;

/** What one host saw. */
export interface HostSummary {
  readonly host: string;
  readonly requestCount: number;
  /** How many of them were answered 429. */
  readonly refusedCount: number;
  /** The most that arrived in any interval of one second, half-open: two exactly 1,000 ms apart are never in one. */
  readonly mostInAnySecond: number;
  /** Between one arrival and the next. Infinity with fewer than two requests. */
  readonly shortestGapMs: number;
  /** How many arrived after the first 429 and before its Retry-After had passed. Those already on their way are among them. */
  readonly tooSoonCount: number;
}

/** How to read a log. A `Server` fits. */
export interface SummariseOptions {
  /** What the 429s carried. Default 2,000. */
  readonly retryAfterMs?: number;
}

/** Sums up a log for each host, in the order in which hosts first appear. An empty log has no hosts. */
export function summarise(log: readonly LogRecord[], { retryAfterMs = 2_000 }: SummariseOptions = {}): HostSummary[] {
  const hosts = new Set(log.map(({ host }) => host));
  return [...hosts].map((name) =>
    summariseHost(
      name,
      log.filter(({ host }) => host === name),
      retryAfterMs,
    ),
  );
}

function summariseHost(host: string, records: readonly LogRecord[], retryAfterMs: number): HostSummary {
  const arrivals = records.toSorted((a, b) => a.atMs - b.atMs);
  const firstRefused = arrivals.findIndex(({ status }) => status === tooManyRequests);
  const retryAtMs = (arrivals[firstRefused]?.atMs ?? 0) + retryAfterMs;
  return {
    host,
    requestCount: arrivals.length,
    refusedCount: arrivals.filter(({ status }) => status === tooManyRequests).length,
    mostInAnySecond: mostInAnySecond(arrivals),
    shortestGapMs: arrivals.reduce(
      (shortest, { atMs }, index) => (index === 0 ? shortest : Math.min(shortest, atMs - arrivals[index - 1].atMs)),
      Number.POSITIVE_INFINITY,
    ),
    tooSoonCount:
      firstRefused === -1 ? 0 : arrivals.slice(firstRefused + 1).filter(({ atMs }) => atMs < retryAtMs).length,
  };
}

function mostInAnySecond(arrivals: readonly LogRecord[]): number {
  let most = 0;
  let from = 0;
  for (let index = 0; index < arrivals.length; index++) {
    while (arrivals[index].atMs - arrivals[from].atMs >= secondMs) from += 1;
    most = Math.max(most, index - from + 1);
  }
  return most;
}
