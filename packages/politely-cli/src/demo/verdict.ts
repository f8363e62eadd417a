import { auditTrace, type OriginRequest, type TraceEntry } from "politely/testing";
import { ANSWER_WITHIN_MS, type DemoSite } from "./sites.js";

/** What one site noted about one caller. */
export interface Verdict {
  readonly site: string;
  readonly caller: string;
  /** Pages it got, and wanted. */
  readonly pages: number;
  readonly wanted: number;
  /** All that arrived, robots.txt included. */
  readonly requests: number;
  /** Answers of 429. */
  readonly throttled: number;
  /** The least time between two arrivals; absent before the second. */
  readonly closestGapMs?: number;
  /** The most arrivals in any second. */
  readonly mostInASecond: number;
  /** By the audit of the site's log. */
  readonly isKept: boolean;
  /** What was not kept, a sentence each. */
  readonly problems: readonly string[];
}

const SECOND_MS = 1_000;

/** Holds a site's log of one caller against the site's rules. A request for robots.txt is one like any other. */
export function judge(site: DemoSite, caller: { readonly name: string; readonly userAgent: string }): Verdict {
  const requests = site.requestsFrom(caller.userAgent);
  const arrivals = requests.map(({ atMs }) => atMs);
  const closestGapMs = closestGap(arrivals);
  const problems = audit(site, requests);
  return {
    site: site.name,
    caller: caller.name,
    pages: requests.filter(({ path, status }) => path !== "/robots.txt" && status === 200).length,
    wanted: site.urls.length,
    requests: requests.length,
    throttled: requests.filter(({ status }) => status === 429).length,
    ...(closestGapMs === undefined ? {} : { closestGapMs }),
    mostInASecond: mostIn(arrivals, SECOND_MS),
    isKept: problems.length === 0,
    problems,
  };
}

/** What the project's own checker says about it. */
function audit({ host, rules }: DemoSite, requests: readonly OriginRequest[]): readonly string[] {
  const report = auditTrace(
    requests.map((request) => entryOf(host, request)),
    { hosts: { [host]: rules } },
  );
  return report.keys.flatMap(({ violations, ignoredCount }) => [
    ...violations.map(({ says }) => says),
    ...(ignoredCount === 0 ? [] : [`a Retry-After ignored ${ignoredCount === 1 ? "once" : `${ignoredCount} times`}`]),
  ]);
}

function entryOf(host: string, { atMs, status, trueWaitMs }: OriginRequest): TraceEntry {
  return {
    host,
    startedAtMs: atMs,
    answeredAtMs: [atMs, atMs + ANSWER_WITHIN_MS],
    ...(status === undefined ? {} : { status }),
    // The sites tell the truth, in whole seconds.
    ...(status === 429 ? { retryAfterMs: Math.ceil(trueWaitMs / SECOND_MS) * SECOND_MS } : {}),
  };
}

function closestGap(arrivals: readonly number[]): number | undefined {
  const gaps = arrivals.slice(1).map((atMs, index) => atMs - (arrivals[index] ?? atMs));
  return gaps.length === 0 ? undefined : Math.min(...gaps);
}

/** The most of these instants, which are in order, in any interval (t, t + P]. */
function mostIn(arrivals: readonly number[], periodMs: number): number {
  let first = 0;
  let most = 0;
  for (const [index, atMs] of arrivals.entries()) {
    while (atMs - (arrivals[first] ?? atMs) >= periodMs) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
