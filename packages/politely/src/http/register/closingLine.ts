import type { Stats } from "../../observe/types.js";

/** What there is to tell at the end. */
export interface Closing {
  /** Undefined in the main thread. */
  readonly workerId: number | undefined;
  /** Where the policy comes from. */
  readonly origin: string;
  readonly stats: readonly Stats[];
  /** Whether requests to a host of `stats` were left alone. */
  readonly isExempt: (host: string) => boolean;
  readonly nodeHttp: number;
  readonly ownDispatcher: number;
  readonly isReplaced: boolean;
}

/** Everything that was seen, and what cannot be covered, in one line. Undefined for a worker that has seen nothing. */
export function closingLine(closing: Closing): string | undefined {
  const { workerId, origin, stats, isExempt } = closing;
  const paced = stats.filter(({ host }) => !isExempt(host));
  const missed = notCovered(closing);
  if (workerId !== undefined && paced.length === 0 && missed.length === 0) return undefined;
  const who = workerId === undefined ? "politely" : `politely (worker ${workerId}, which has a limiter of its own)`;
  return `${who}: ${told(paced, origin)}${missed.length === 0 ? "" : `; not covered: ${missed.join(", ")}`}`;
}

function told(paced: readonly Stats[], origin: string): string {
  const sum = (count: (row: Stats) => number): number => paced.reduce((total, row) => total + count(row), 0);
  const requests = sum(({ totalRequests }) => totalRequests);
  const hosts = sum(({ foldedHosts = 1 }) => foldedHosts);
  const throttled = sum(({ throttledRequests }) => throttledRequests);
  const failed = sum(({ refused, expired }) => refused + expired);
  const waiting = sum((row) => row.waiting);
  const waitedSec = (sum(({ totalWaitMs }) => totalWaitMs) / 1_000).toFixed(1);
  if (requests + failed + waiting === 0) return `no requests paced (${origin})`;
  return [
    `${counted(requests, "request")} to ${counted(hosts, "host")} paced (${origin}), waited ${waitedSec} s in all`,
    throttled === 0 ? "" : `${counted(throttled, "answer")} said "too many requests"`,
    failed === 0 ? "" : `${failed} refused by the policy`,
    waiting === 0 ? "" : `${waiting} still waiting at the end`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}

function notCovered({ stats, isExempt, nodeHttp, ownDispatcher, isReplaced }: Closing): string[] {
  const local = stats.filter(({ host }) => isExempt(host)).reduce((sum, { totalRequests }) => sum + totalRequests, 0);
  return [
    nodeHttp === 0 ? "" : `${counted(nodeHttp, "request")} through node:http (axios, got, node-fetch and others)`,
    ownDispatcher === 0 ? "" : `${counted(ownDispatcher, "request")} through undici dispatchers of the program's own`,
    local === 0 ? "" : `${counted(local, "request")} to this machine (localhost is exempt)`,
    isReplaced ? "what went through another global dispatcher that the program has set" : "",
  ].filter((part) => part !== "");
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
