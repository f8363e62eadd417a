import type { HostFeed } from "./hostFeed.js";
import { HOST_STATES, type HostRow } from "./row.js";
import { unhurried } from "./unhurried.js";

/** The most interesting hosts. */
export interface Ranking {
  /** How many fit. */
  readonly matched: number;
  /** The first of them, as they were when each was looked at. */
  readonly rows: readonly HostRow[];
}

/** What is asked for. */
export interface RankingOptions {
  /** Rows at most, a few thousand. */
  readonly limit: number;
  /** Default: all fit. */
  readonly fits?: (row: HostRow) => boolean;
}

/**
 * Finds the most interesting hosts: by state, then those with the most waiting, the fastest, the latest. Others have their turn in between: no more than
 * 300 hosts are looked at, and no more than twice `limit` sorted, in one go.
 */
export async function ranking(feed: HostFeed, { limit, fits = () => true }: RankingOptions): Promise<Ranking> {
  const moment = feed.moment();
  let best: HostRow[] = [];
  let matched = 0;
  // A copy: a host that is heard of moves to the end of the line.
  for await (const record of unhurried([...feed.records()])) {
    const row = record.row(moment);
    if (!fits(row)) continue;
    matched += 1;
    best.push(row);
    if (best.length >= 2 * limit) best = best.sort(byInterest).slice(0, limit);
  }
  return { matched, rows: best.sort(byInterest).slice(0, limit) };
}

function byInterest(a: HostRow, b: HostRow): number {
  return (
    HOST_STATES.indexOf(a.state) - HOST_STATES.indexOf(b.state) ||
    b.waiting - a.waiting ||
    b.perSecond - a.perSecond ||
    (b.lastAt ?? 0) - (a.lastAt ?? 0) ||
    (a.domain < b.domain ? -1 : 1)
  );
}
