import type { HostRow, HostState } from "../../../src/serve/feed/row.js";

/** A host as it was last heard of, with instants on this page's clocks. */
export interface Host extends HostRow {
  /** When the next start is due, on `performance.now()`; null where it is not known. */
  readonly nextAtMs: number | null;
  /** The name in lower case, to search in. */
  readonly sought: string;
}

/** What hosts can be sorted by. */
export type SortColumn =
  | "domain"
  | "state"
  | "perSecond"
  | "waiting"
  | "inFlight"
  | "total"
  | "throttled"
  | "nextStart";

/** Which hosts are shown, and in which order. */
export interface ViewChoice {
  readonly query: string;
  /** Undefined: all. */
  readonly state: HostState | undefined;
  readonly column: SortColumn;
  readonly isDescending: boolean;
}

/** The states in the order of the filter bar. */
export const STATES: readonly HostState[] = ["flowing", "waiting", "cooling", "paused", "idle"];
const RANK: Readonly<Record<HostState, number>> = { cooling: 0, paused: 1, waiting: 2, flowing: 3, idle: 4 };

/** A row as this page keeps it. `aheadMs` is how far this machine's calendar is ahead of the service's. */
export function hostOf(row: HostRow, aheadMs: number): Host {
  const onOwnClock = (instant: number | null): number | null => (instant === null ? null : instant + aheadMs);
  return {
    ...row,
    until: onOwnClock(row.until),
    lastAt: onOwnClock(row.lastAt),
    nextAtMs: row.nextStartMs === null ? null : performance.now() + row.nextStartMs,
    sought: row.domain.toLowerCase(),
  };
}

/** One start in the ten seconds that a rate is taken over. */
const ONE_START = 0.1;

/**
 * The rate of a host as it is shown. One start more than the limit comes to in ten seconds is no more than where the ten seconds begin: 3 s apart, there are three or four
 * starts in them. Anything above that is shown as it is.
 */
export function usedPerSecond({ perSecond, allowedPerSecond }: Pick<Host, "perSecond" | "allowedPerSecond">): number {
  const isOneAbove =
    allowedPerSecond !== null && perSecond > allowedPerSecond && perSecond - allowedPerSecond <= ONE_START;
  return isOneAbove ? allowedPerSecond : perSecond;
}

/** The hosts that fit, in order. Equal ones are in the order of their names, so that rows stay where they are. */
export function arrange(hosts: Iterable<Host>, { query, state, column, isDescending }: ViewChoice): string[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found: Host[] = [];
  for (const host of hosts) {
    if (state !== undefined && host.state !== state) continue;
    if (words.every((word) => host.sought.includes(word))) found.push(host);
  }
  const sign = isDescending ? -1 : 1;
  found.sort((a, b) => sign * byColumn(a, b, column) || byName(a, b));
  return found.map(({ domain }) => domain);
}

function byColumn(a: Host, b: Host, column: SortColumn): number {
  if (column === "domain") return byName(a, b);
  if (column === "state") return RANK[a.state] - RANK[b.state];
  // Who has no next start comes last.
  if (column === "nextStart") return order(a.nextAtMs ?? Number.MAX_VALUE, b.nextAtMs ?? Number.MAX_VALUE);
  return a[column] - b[column];
}

function byName(a: Host, b: Host): number {
  return order(a.sought, b.sought);
}

function order<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
