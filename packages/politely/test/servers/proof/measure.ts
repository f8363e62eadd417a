import type { LogRecord } from "../server.js";
import { summarise } from "../summarise.js";
import type { Site } from "./sites.js";

const tooManyRequests = 429;
/** Logs have whole milliseconds, on a wall clock that is kept right meanwhile. */
const roundingMs = 2;

/** What one site saw, all its hosts together. */
export interface Seen {
  readonly site: string;
  /** How many requests arrived at each host. */
  readonly requestCounts: readonly number[];
  readonly refusedCount: number;
  /** From 0 to 1. */
  readonly refusedShare: number;
  /** What arrived, of what the site would have allowed in the same time; that of the slowest host. */
  readonly usedShare: number;
}

/** Reads in a site's own log what arrived there. */
export async function see({ kind, hosts, log }: Site): Promise<Seen> {
  const records = await log();
  const refusedCount = summarise(records).reduce((sum, host) => sum + host.refusedCount, 0);
  const byHost = hosts.map(({ address }) => records.filter(({ host }) => host === address));
  return {
    site: kind.name,
    requestCounts: byHost.map(({ length }) => length),
    refusedCount,
    refusedShare: refusedCount / records.length,
    usedShare: Math.min(...byHost.map((arrivals) => arrivals.length / kind.allowed(spanMs(arrivals)))),
  };
}

/** A time in which a host was to be left alone. */
export interface Stop {
  /** How long after its 429 each request came that arrived before Retry-After had passed. */
  readonly earlyMs: readonly number[];
  /** What came first once it had passed, and how long after; undefined if nothing did. */
  readonly next: { readonly afterMs: number; readonly status: number } | undefined;
}

/** Every time that a host said stop, by its log: from a 429 until its Retry-After has passed. A 429 within such a time begins no new one. */
export function stopsIn(arrivals: readonly LogRecord[], retryAfterMs: number): Stop[] {
  const stops: Stop[] = [];
  let overAtMs = Number.NEGATIVE_INFINITY;
  for (const [index, { atMs, status }] of arrivals.entries()) {
    if (status !== tooManyRequests || atMs < overAtMs) continue;
    overAtMs = atMs + retryAfterMs - roundingMs;
    const later = arrivals.slice(index + 1);
    const next = later.find((record) => record.atMs >= overAtMs);
    stops.push({
      earlyMs: later.filter((record) => record.atMs < overAtMs).map((record) => record.atMs - atMs),
      next: next && { afterMs: next.atMs - atMs - retryAfterMs, status: next.status },
    });
  }
  return stops;
}

function spanMs(arrivals: readonly LogRecord[]): number {
  return (arrivals.at(-1)?.atMs ?? 0) - (arrivals[0]?.atMs ?? 0);
}
