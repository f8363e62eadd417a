import type { Heard } from "./answer.js";
import type { BackoffRule, Rule } from "./rule.js";

/** All that a key remembers of bad answers. */
export interface Incident {
  /** The key is left alone before this instant. */
  readonly untilUs: number;
  /** When the first bad answer came. Answers to requests started at or before it belong to this incident, for ever. */
  readonly beganUs: number;
  /** How often in a row each ladder was climbed without a success between, and whether this incident has climbed it already. */
  readonly throttleStep: number;
  readonly errorStep: number;
  readonly throttleRaised: boolean;
  readonly errorRaised: boolean;
  /** Where the one request is that goes first after the hold, and when it started. */
  readonly probe: "due" | "out" | "done";
  readonly probeAtUs: number;
  /** What was answered, for people: `"429, Retry-After 30 s"`. */
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
 * under way when it began lengthen it at most. `random`, from 0 up to 1, lengthens a step of the backoff by its jitter.
 */
export function afterBadAnswer(
  before: Incident | undefined,
  rule: Pick<Rule, "cooldownUs" | "backoff">,
  { kind, startedUs, nowUs, retryAfterUs, because }: Heard,
  random: number,
): Incident | undefined {
  const isThrottle = kind === "rate_limited";
  if (retryAfterUs === 0 && !isThrottle && rule.backoff.kind === "none") return before;
  const state = before !== undefined && isIncidentForgotten(before, nowUs) ? undefined : before;
  const isSame = before !== undefined && startedUs <= before.beganUs;
  const wasRaised = isSame && (isThrottle ? before.throttleRaised : before.errorRaised);
  const throttleStep = (state?.throttleStep ?? 0) + (isThrottle && !wasRaised ? 1 : 0);
  const errorStep = (state?.errorStep ?? 0) + (isThrottle || wasRaised ? 0 : 1);

  // A success may have reset the step in the middle of the incident; a late bad answer holds for the first one all the same.
  const step = Math.max(1, isThrottle ? throttleStep : errorStep);
  const { cooldownUs, backoff } = rule;
  const ladderUs = isThrottle ? cooldownUs[Math.min(step, cooldownUs.length) - 1] : backoffUs(backoff, step, random);
  const untilUs = Math.max(before?.untilUs ?? Number.NEGATIVE_INFINITY, nowUs + (retryAfterUs || ladderUs));
  return {
    untilUs,
    beganUs: isSame ? before.beganUs : nowUs,
    throttleStep,
    errorStep,
    throttleRaised: isThrottle || (isSame && before.throttleRaised),
    errorRaised: !isThrottle || (isSame && before.errorRaised),
    // A step of the ladder may be 0: then it is climbed, and nothing is held.
    probe: untilUs > nowUs ? "due" : "done",
    probeAtUs: 0,
    because: before?.untilUs === untilUs ? before.because : because,
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
export function incidentReadyAt({ probe, untilUs, probeAtUs }: Incident, gapUs: number): number {
  return probe === "out" ? Math.max(untilUs, probeAtUs + Math.max(PROBE_PATIENCE_US, gapUs)) : untilUs;
}

/** Whether the steps say no more than a new key would. Answers to requests from before still belong to the incident. */
export function isIncidentForgotten({ untilUs, throttleStep, errorStep }: Incident, nowUs: number): boolean {
  return nowUs >= untilUs + (throttleStep + errorStep === 0 ? 0 : INCIDENT_MEMORY_US);
}

function backoffUs({ kind, baseUs, maxUs, jitter }: BackoffRule, step: number, random: number): number {
  if (kind === "none") return 0;
  const steadyUs = Math.min(maxUs, baseUs * (kind === "linear" ? step : 2 ** Math.min(step - 1, 60)));
  return steadyUs + Math.ceil(steadyUs * jitter * random);
}
