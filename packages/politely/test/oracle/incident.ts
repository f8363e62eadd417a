import type { Ending } from "./script.js";

/** What bad answers cost at one host. */
export interface HoldRules {
  /** Stays after a 429 without Retry-After, step by step; the last one repeats. */
  readonly cooldownUs: readonly number[];
  readonly backoff: {
    readonly kind: "none" | "linear" | "exponential";
    readonly baseUs: number;
    readonly maxUs: number;
  };
  /** How long the rest wait for a probe nobody reports on: 5 s or one gap, whichever is longer. */
  readonly patienceUs: number;
}

/** The documented defaults: 60 s after a 429; 5, 10, … 30 s after errors. */
export const defaultHoldRules: HoldRules = {
  cooldownUs: [60_000_000],
  backoff: { kind: "linear", baseUs: 5_000_000, maxUs: 30_000_000 },
  patienceUs: 5_000_000,
};

/** Something that happened at a host: a request started, or it ended. */
export type HostLogEntry =
  | { readonly what: "start"; readonly id: number; readonly atUs: number }
  | {
      readonly what: "end";
      readonly id: number;
      readonly atUs: number;
      readonly startedUs: number;
      readonly ending: Ending;
    };

/** Where a host stands after a log of starts and answers. */
export interface Incident {
  readonly untilUs: number;
  /** When the running incident began; -Infinity when there never was one. */
  readonly beganUs: number;
  readonly throttleStep: number;
  readonly errorStep: number;
  /** Nobody but a waiting probe may start: `due` before it went, its start once it is out. */
  readonly probe: "none" | "due" | { readonly id: number; readonly atUs: number };
}

const quiet: Incident = { untilUs: -Infinity, beganUs: -Infinity, throttleStep: 0, errorStep: 0, probe: "none" };

/** Reads the whole log again, from the first entry on, and says where the host stands. */
export function incidentAfter(log: readonly HostLogEntry[], rules: HoldRules): Incident {
  let state = quiet;
  let raised = { throttle: false, error: false };
  for (const entry of log) {
    if (entry.what === "start") {
      if (state.probe === "due") state = { ...state, probe: { id: entry.id, atUs: entry.atUs } };
      else if (state.probe !== "none") state = { ...state, probe: "none" };
      continue;
    }
    const { ending, startedUs, atUs } = entry;
    if (typeof state.probe === "object" && state.probe.id === entry.id) {
      state = { ...state, probe: ending.kind === "unused" ? "due" : "none" };
    }
    if (ending.kind === "success" && startedUs > state.beganUs) {
      // The steps begin again, and nobody waits for a probe, unless a hold still runs: no success shortens that. What was under way when the
      // incident began belongs to it for ever.
      const probe = atUs >= state.untilUs ? "none" : state.probe;
      state = { ...state, throttleStep: 0, errorStep: 0, probe };
    }
    if (ending.kind === "neutral" || ending.kind === "unused" || ending.kind === "success") continue;

    const belongs = startedUs <= state.beganUs;
    const already = belongs ? raised : { throttle: false, error: false };
    const ladder = ending.kind === "rate_limited" ? "throttle" : "error";
    const rise = already[ladder] ? 0 : 1;
    const throttleStep = state.throttleStep + (ladder === "throttle" ? rise : 0);
    const errorStep = state.errorStep + (ladder === "error" ? rise : 0);
    const asked = ending.retryAfterMs !== undefined && ending.retryAfterMs > 0 ? ending.retryAfterMs * 1000 : undefined;
    const holdUs = asked ?? (ladder === "throttle" ? throttleUs(rules, throttleStep) : backoffUs(rules, errorStep));
    if (holdUs === 0) continue;
    raised = { ...already, [ladder]: true };
    state = {
      untilUs: Math.max(state.untilUs, atUs + holdUs),
      beganUs: belongs ? state.beganUs : atUs,
      throttleStep,
      errorStep,
      probe: "due",
    };
  }
  return state;
}

/** When the next request may start as far as bad answers go. */
export function incidentReadyAt(log: readonly HostLogEntry[], rules: HoldRules): number {
  const { untilUs, probe } = incidentAfter(log, rules);
  return typeof probe === "object" ? Math.max(untilUs, probe.atUs + rules.patienceUs) : untilUs;
}

function throttleUs({ cooldownUs }: HoldRules, step: number): number {
  return cooldownUs[Math.min(Math.max(1, step), cooldownUs.length) - 1];
}

function backoffUs({ backoff }: HoldRules, step: number): number {
  if (backoff.kind === "none") return 0;
  const factor = backoff.kind === "linear" ? Math.max(1, step) : 2 ** (Math.max(1, step) - 1);
  return Math.min(backoff.maxUs, backoff.baseUs * factor);
}
