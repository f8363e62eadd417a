import type { BadAnswer } from "./answer.js";
import type { BackoffRule, Rule } from "./rule.js";

/** Where the one request is that goes first after a hold. */
export type ProbeState = "due" | "out" | "done";

/** All that a key remembers of bad answers. */
export interface Incident {
  /** The key is left alone before this instant. */
  readonly untilUs: number;
  /** When the first bad answer came. Answers to requests started at or before it belong to this incident, for ever. */
  readonly beganUs: number;
  /** How often in a row each ladder was climbed without a success between. */
  readonly throttleStep: number;
  readonly errorStep: number;
  /** Whether this incident has climbed each ladder already. */
  readonly throttleRaised: boolean;
  readonly errorRaised: boolean;
  readonly probe: ProbeState;
  readonly probeAtUs: number;
  /** What was answered, for people: `"429, Retry-After 30 s"`. */
  readonly because: string;
}

/** A bad answer, with what is needed to judge it. */
export interface BadAnswerReport {
  readonly kind: BadAnswer;
  readonly startedUs: number;
  readonly nowUs: number;
  /** How long the site asked to stay away; 0 when it did not say. */
  readonly retryAfterUs: number;
  /** From 0 up to 1; jitter lengthens by it. */
  readonly random: number;
  readonly because: string;
}

/** The least time after which the rest follow a probe that nobody reports on. */
export const PROBE_PATIENCE_US = 5_000_000;

/** How long a climbed ladder is remembered after the hold, so that the next incident climbs further. */
export const INCIDENT_MEMORY_US = 3_600_000_000;

/**
 * The incident after a bad answer; the same one, possibly undefined, when it holds nothing (backoff `none`).
 *
 * The hold is only ever lengthened. The step of a ladder rises once per incident: bad answers to requests that were
 * under way when it began lengthen it at most.
 */
export function afterBadAnswer(
  before: Incident | undefined,
  rule: Pick<Rule, "cooldownUs" | "backoff">,
  report: BadAnswerReport,
): Incident | undefined {
  const state = before !== undefined && isIncidentForgotten(before, report.nowUs) ? undefined : before;
  const isThrottle = report.kind === "rate_limited";
  if (report.retryAfterUs === 0 && !isThrottle && rule.backoff.kind === "none") return before;
  const isSame = before !== undefined && report.startedUs <= before.beganUs;
  const wasRaised = isSame && (isThrottle ? before.throttleRaised : before.errorRaised);
  const rise = wasRaised ? 0 : 1;
  const throttleStep = (state?.throttleStep ?? 0) + (isThrottle ? rise : 0);
  const errorStep = (state?.errorStep ?? 0) + (isThrottle ? 0 : rise);

  // A success may have reset the step in the middle of the incident; a late bad answer holds for the first one all the same.
  const step = Math.max(1, isThrottle ? throttleStep : errorStep);
  const ladderUs = isThrottle
    ? rule.cooldownUs[Math.min(step, rule.cooldownUs.length) - 1]
    : backoffUs(rule.backoff, step, report.random);
  const holdUs = report.retryAfterUs > 0 ? report.retryAfterUs : ladderUs;
  const untilUs = Math.max(before?.untilUs ?? Number.NEGATIVE_INFINITY, report.nowUs + holdUs);
  return {
    untilUs,
    beganUs: isSame ? before.beganUs : report.nowUs,
    throttleStep,
    errorStep,
    throttleRaised: isThrottle || (isSame && before.throttleRaised),
    errorRaised: !isThrottle || (isSame && before.errorRaised),
    // A step of the ladder may be 0: then it is climbed, and nothing is held.
    probe: untilUs > report.nowUs ? "due" : "done",
    probeAtUs: 0,
    because: before !== undefined && untilUs === before.untilUs ? before.because : report.because,
  };
}

/**
 * The incident after a success of a request started at `startedUs`.
 *
 * Only a request started after it began resets the steps and ends the wait for a probe, and no success shortens a running hold.
 */
export function afterSuccess(state: Incident, startedUs: number, nowUs: number): Incident {
  if (startedUs <= state.beganUs) return state;
  return { ...state, throttleStep: 0, errorStep: 0, probe: nowUs >= state.untilUs ? "done" : state.probe };
}

/** When the next request may start: after the hold, and while the probe is out, once it is overdue. */
export function incidentReadyAt(state: Incident, gapUs: number): number {
  if (state.probe !== "out") return state.untilUs;
  return Math.max(state.untilUs, state.probeAtUs + Math.max(PROBE_PATIENCE_US, gapUs));
}

/** Whether the steps say no more than a new key would. Answers to requests from before still belong to the incident. */
export function isIncidentForgotten(state: Incident, nowUs: number): boolean {
  const isReset = state.throttleStep === 0 && state.errorStep === 0;
  return nowUs >= state.untilUs + (isReset ? 0 : INCIDENT_MEMORY_US);
}

function backoffUs(backoff: BackoffRule, step: number, random: number): number {
  if (backoff.kind === "none") return 0;
  const factor = backoff.kind === "linear" ? step : 2 ** Math.min(step - 1, 60);
  const steadyUs = Math.min(backoff.maxUs, backoff.baseUs * factor);
  return steadyUs + Math.ceil(steadyUs * backoff.jitter * random);
}
