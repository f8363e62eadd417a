import type { BadAnswer } from "../core/answer.js";
import type { BackoffRule, Rule } from "../core/rule.js";

/** Where the one request that goes first after a hold is. */
export type ProbeState = "due" | "out" | "done";

/** All that a key remembers of bad answers. */
export interface CooldownState {
  /** The key is left alone before this instant. */
  readonly untilUs: number;
  /** When the incident's first bad answer came. Answers to requests started at or before it belong to the incident. */
  readonly beganUs: number;
  /** How often in a row each ladder was climbed without a success between. */
  readonly throttleStep: number;
  readonly errorStep: number;
  /** Whether the running incident has climbed each ladder already. */
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

/** How long an incident is remembered after its hold, so that the next one climbs further. */
export const INCIDENT_MEMORY_US = 3_600_000_000;

/**
 * The state after a bad answer; the same state, possibly undefined, when it holds nothing (backoff `none`).
 *
 * The hold is only ever lengthened. The step of a ladder rises once per incident: bad answers to requests that were
 * already under way when the cooldown began lengthen it at most.
 */
export function afterBadAnswer(
  before: CooldownState | undefined,
  rule: Pick<Rule, "cooldownUs" | "backoff">,
  report: BadAnswerReport,
): CooldownState | undefined {
  const state = before !== undefined && isCooldownForgotten(before, report.nowUs) ? undefined : before;
  const isThrottle = report.kind === "rate_limited";
  const isSame = state !== undefined && report.startedUs <= state.beganUs;
  const wasRaised = isSame && (isThrottle ? state.throttleRaised : state.errorRaised);
  const rise = wasRaised ? 0 : 1;
  const throttleStep = (state?.throttleStep ?? 0) + (isThrottle ? rise : 0);
  const errorStep = (state?.errorStep ?? 0) + (isThrottle ? 0 : rise);

  // A success may have reset the step in the middle of the incident; a late bad answer still holds for the first one.
  const step = Math.max(1, isThrottle ? throttleStep : errorStep);
  const ladderUs = isThrottle
    ? rule.cooldownUs[Math.min(step, rule.cooldownUs.length) - 1]
    : backoffUs(rule.backoff, step, report.random);
  if (report.retryAfterUs === 0 && !isThrottle && rule.backoff.kind === "none") return state;
  const holdUs = report.retryAfterUs > 0 ? report.retryAfterUs : ladderUs;
  const untilUs = Math.max(state?.untilUs ?? Number.NEGATIVE_INFINITY, report.nowUs + holdUs);
  return {
    untilUs,
    beganUs: isSame ? state.beganUs : report.nowUs,
    throttleStep,
    errorStep,
    throttleRaised: isThrottle || (isSame && state.throttleRaised),
    errorRaised: !isThrottle || (isSame && state.errorRaised),
    // A step of the ladder may be 0: then it is climbed, and nothing is held.
    probe: untilUs > report.nowUs ? "due" : "done",
    probeAtUs: 0,
    because: state !== undefined && untilUs === state.untilUs ? state.because : report.because,
  };
}

/**
 * The state after a success of a request started at `startedUs`; undefined when nothing is left to remember.
 *
 * Only a request started after the cooldown began resets the steps, and no success shortens a running hold.
 */
export function afterSuccess(state: CooldownState, startedUs: number, nowUs: number): CooldownState | undefined {
  if (startedUs <= state.beganUs) return state;
  if (nowUs >= state.untilUs) return undefined;
  return { ...state, throttleStep: 0, errorStep: 0 };
}

/** When the next request may start: after the hold, and while the probe is out, once it is overdue. */
export function cooldownReadyAt(state: CooldownState, gapUs: number): number {
  if (state.probe !== "out") return state.untilUs;
  return Math.max(state.untilUs, state.probeAtUs + Math.max(PROBE_PATIENCE_US, gapUs));
}

/** Whether the state says no more than a new key would. */
export function isCooldownForgotten(state: CooldownState, nowUs: number): boolean {
  return nowUs >= state.untilUs + INCIDENT_MEMORY_US;
}

function backoffUs(backoff: BackoffRule, step: number, random: number): number {
  if (backoff.kind === "none") return 0;
  const factor = backoff.kind === "linear" ? step : 2 ** Math.min(step - 1, 60);
  const steadyUs = Math.min(backoff.maxUs, backoff.baseUs * factor);
  return steadyUs + Math.ceil(steadyUs * backoff.jitter * random);
}
