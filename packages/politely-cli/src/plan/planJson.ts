import type { Plan } from "./plan.js";

/** What goes into the JSON of a plan beside the plan. */
export interface PlanJsonOptions {
  readonly wallMs: number;
  readonly duplicates: number;
  readonly peakInFlight: number;
}

/** A plan for programs: one object, times in milliseconds from the beginning, hosts with the slowest first. `endsAt` is null beyond what a date can hold. */
export function planJson(plan: Plan, { wallMs, duplicates, peakInFlight }: PlanJsonOptions): object {
  const { requests, durationMs, isEstimate, latencyMs, concurrency, hosts, longPole } = plan;
  return {
    requests,
    duplicates,
    durationMs,
    isEstimate,
    startsAt: isoText(wallMs),
    endsAt: isoText(wallMs + durationMs),
    latencyMs,
    concurrency: concurrency ?? null,
    peakInFlight,
    longPole:
      longPole === undefined
        ? null
        : { host: longPole.key, ties: longPole.ties, oneMorePerSecond: longPole.whatIf ?? null },
    hosts: hosts.map(({ key, requests: count, endsAtMs, origin, binds }) => ({
      host: key,
      requests: count,
      endsAtMs,
      limitsFrom: origin,
      binds: binds ?? null,
    })),
  };
}

/** The latest instant that a `Date` can hold. */
const LAST_DATE_MS = 8.64e15;

function isoText(wallMs: number): string | null {
  return Math.abs(wallMs) <= LAST_DATE_MS ? new Date(wallMs).toISOString() : null;
}
