import type { GetProgress, GetSummary, HostProgress } from "../../src/get/observer.js";

/** A run of `hosts`, all numbers as they are given. */
export function fakeProgress(hosts: readonly HostProgress[], changes: Partial<GetProgress> = {}): GetProgress {
  const sum = (field: "total" | "done" | "failed" | "inFlight"): number =>
    hosts.reduce((total, host) => total + host[field], 0);
  return {
    total: sum("total"),
    done: sum("done"),
    failed: sum("failed"),
    inFlight: sum("inFlight"),
    bytes: 0,
    beganAtMs: 0,
    starts: 0,
    policy: { default: { rate: "1/s" } },
    concurrency: undefined,
    isStopping: false,
    hosts: () => hosts,
    waits: () => new Map(),
    left: () => new Map(hosts.map(({ key, total, done }) => [key, total - done])),
    ...changes,
  };
}

/** `count` hosts at work, each with 100 URLs. */
export function busyHosts(count: number): HostProgress[] {
  return Array.from({ length: count }, (_, index) => ({
    key: `h${index}.example`,
    total: 100,
    done: 10,
    failed: 0,
    inFlight: 1,
    startsPerSec: 1,
    limit: "1/s",
  }));
}

export const emptySummary: GetSummary = {
  type: "summary",
  total: 1,
  fetched: 1,
  unchanged: 0,
  failed: 0,
  left: 0,
  finishedBefore: 0,
  requests: 1,
  bytes: 10,
  tookMs: 1_500,
  isStopped: false,
  hosts: [],
};
