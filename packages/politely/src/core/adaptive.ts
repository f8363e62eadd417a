import { isLong, isSlower, judgedAnew, type LatencyState, latencyAfter } from "./adaptiveLatency.js";
import type { BadAnswer } from "./answer.js";
import type { AdaptiveRule } from "./rule.js";

/** How a request ended, as far as the pace of its key goes. */
export type ObservedKind = "success" | BadAnswer;

/** One answer, or the lack of one. */
export interface Observation {
  readonly kind: ObservedKind;
  /** From the start to the answer. Undefined, negative or not a number: unknown. */
  readonly latencyUs: number | undefined;
  readonly startedUs: number;
  readonly nowUs: number;
}

/** All that a key remembers of its answers. Times are whole microseconds. */
export interface AdaptiveState {
  /** The least time between two starts that is asked for. 0: full speed, where the policy alone rules. */
  readonly gapUs: number;
  /** Where the policy sets no pace: the gap that counts as full speed until it is reached again. 0 at full speed. */
  readonly fullUs: number;
  /** The gap at which the last trouble began, near which steps up are small. 0: none, or it lies behind. */
  readonly troubleUs: number;
  /** The gap at which the running series of cuts began. 0: the last change was a step up. */
  readonly seriesUs: number;
  /** When it was last made slower. Answers to requests started until then change nothing. */
  readonly slowedUs: number;
  /** When it was last made faster. */
  readonly raisedUs: number;
  /** What answers took when slow ones made it slower; 0 when bad ones did. */
  readonly slowLatencyUs: number;
  /** When the last answer came. */
  readonly heardUs: number;
  /** The last answers, one bit each, the newest lowest: 1 for a bad one. */
  readonly history: number;
  /** How many answers `history` holds. */
  readonly heardCount: number;
  /** The share of bad answers lately, from 0 to 1. It begins anew with each cut. */
  readonly badShare: number;
  /** The latest start that was answered, and the mean time between such starts, as far as something was in flight. */
  readonly startedUs: number;
  readonly spacingUs: number;
  /** Undefined before the first answer whose latency is known. */
  readonly latency: LatencyState | undefined;
}

/** How long what was learned outlives the last answer; twice the gap where that is longer. */
export const ADAPTIVE_MEMORY_US = 3_600_000_000;
/** How many answers are remembered one by one. */
export const HISTORY_LENGTH = 32;

// How far down: to a 64th of full speed, but not below a start a minute.
const SLOWEST_FACTOR = 64;
const SLOWEST_US = 60_000_000;
/** Slow answers, or a few bad ones, go no further: if an eighth of the load does not help, the load is not the reason. */
const DOUBT_FACTOR = 8;
/** The shortest gap that counts as full speed where the policy sets no pace. */
const LEAST_FULL_US = 1_000;
const SPACING_WEIGHT = 1 / 16;

// Bad answers count by their share of the last 32, or of the last 5 s if there were more: one in a hundred is no overload, a
// tenth is. Once the pace was cut, a sixteenth says that it was not enough.
const BAD_SHARE_FULL = 1 / 10;
const BAD_SHARE_SLOWED = 1 / 16;
const SHARE_WEIGHT = 1 / HISTORY_LENGTH;
const SHARE_US = 5_000_000;
/** So many of the last eight leave no doubt. */
const SHORT_LENGTH = 8;
const SHORT_COUNT = 5;
/** A cut takes half the share of bad answers off the pace, and at least this. */
const CUT_LEAST = 0.25;
const CUT_MOST = 0.5;

// Answers that take three times as long as usual are too slow. One that takes twice as long is no reason for a step up.
const SLOW_FACTOR = 3;
const UNEASY_FACTOR = 2;
const LATENCY_CUT = 0.3;

// A step up is a 32nd of full speed and at most a quarter of the present pace, at most one a second and one per round trip.
const STEPS_TO_FULL = 32;
const STEP_MOST = 0.25;
const STEP_EVERY_US = 1_000_000;
/** Within an eighth of the last trouble it is a 512th of the present pace. */
const NEAR = 1 / 8;
const STEP_NEAR = 1 / 512;
/** So many good answers in a row are needed. */
const CALM_LENGTH = 2;

const NOTHING_LEARNED: AdaptiveState = {
  gapUs: 0,
  fullUs: 0,
  troubleUs: 0,
  seriesUs: 0,
  slowedUs: Number.NEGATIVE_INFINITY,
  raisedUs: Number.NEGATIVE_INFINITY,
  slowLatencyUs: 0,
  heardUs: Number.NEGATIVE_INFINITY,
  history: 0,
  heardCount: 0,
  badShare: 0,
  startedUs: Number.NEGATIVE_INFINITY,
  spacingUs: 0,
  latency: undefined,
};

/**
 * What is known after one more answer, and with it the gap to keep.
 *
 * The gap is 0 or longer than full speed's, and never longer than the rule's slowest. A bad answer never makes it shorter; a success
 * does, by one small step per round trip. Answers to requests that were under way when it was last made slower change nothing, so that any
 * number of failures in flight make one cut. What is older than `ADAPTIVE_MEMORY_US` is forgotten first.
 */
export function afterObservation(
  rule: AdaptiveRule,
  before: AdaptiveState | undefined,
  seen: Observation,
): AdaptiveState {
  const isNew = before === undefined || seen.nowUs >= forgottenAtUs(before);
  const known = isNew ? NOTHING_LEARNED : withinRule(rule, before);
  if (seen.startedUs <= known.slowedUs) return { ...known, heardUs: Math.max(known.heardUs, seen.nowUs) };
  const state = withAnswer(known, seen);
  if (seen.kind !== "success") return afterBad(rule, state, seen);
  return isSlow(state, SLOW_FACTOR) ? afterSlow(rule, state, seen) : afterGood(rule, state, seen);
}

/** The same knowledge under another rule: the gap is kept as far as the rule allows. */
export function withinRule(rule: AdaptiveRule, state: AdaptiveState): AdaptiveState {
  const fullUs = fullOf(rule, state);
  const gapUs = Math.min(state.gapUs, slowestOf(rule, fullUs));
  if (gapUs > fullUs) return gapUs === state.gapUs ? state : { ...state, gapUs };
  return state.gapUs === 0 ? state : { ...state, gapUs: 0, fullUs: 0, troubleUs: 0, seriesUs: 0 };
}

/** When what was learned counts no more, unless another answer comes first. */
export function forgottenAtUs(state: AdaptiveState): number {
  return state.heardUs + Math.max(ADAPTIVE_MEMORY_US, 2 * state.gapUs);
}

/** How many of the last `length` answers were bad; at most 32 are known. */
export function badCount(state: AdaptiveState, length = HISTORY_LENGTH): number {
  let bits = length < HISTORY_LENGTH ? state.history & ((1 << length) - 1) : state.history;
  let count = 0;
  for (; bits !== 0; bits &= bits - 1) count += 1;
  return count;
}

function fullOf(rule: AdaptiveRule, state: AdaptiveState): number {
  if (rule.baseUs > 0) return rule.baseUs;
  return state.fullUs > 0 ? state.fullUs : Math.max(LEAST_FULL_US, state.spacingUs);
}

function slowestOf(rule: AdaptiveRule, fullUs: number): number {
  return Math.max(fullUs, rule.slowestUs > 0 ? rule.slowestUs : Math.min(SLOWEST_FACTOR * fullUs, SLOWEST_US));
}

function withAnswer(state: AdaptiveState, seen: Observation): AdaptiveState {
  const { kind, latencyUs, startedUs, nowUs } = seen;
  const bit = kind === "success" ? 0 : 1;
  const heardCount = Math.min(HISTORY_LENGTH, state.heardCount + 1);
  const sinceUs = Math.max(0, nowUs - state.heardUs);
  const weight = state.heardCount < HISTORY_LENGTH ? 1 / heardCount : Math.min(SHARE_WEIGHT, sinceUs / SHARE_US);
  // Time in which nothing was in flight says nothing about the pace.
  const apartUs = Math.max(0, Math.min(startedUs - state.startedUs, nowUs - startedUs, SLOWEST_US));
  // An error may come at once, and a timeout comes when the caller says so: only successes say what answers take.
  const isTimed = kind === "success" && latencyUs !== undefined && latencyUs >= 0;
  // Every field by name: a copy with some of them replaced takes ten times as long, and this runs for every answer.
  return {
    gapUs: state.gapUs,
    fullUs: state.fullUs,
    troubleUs: state.troubleUs,
    seriesUs: state.seriesUs,
    slowedUs: state.slowedUs,
    raisedUs: state.raisedUs,
    slowLatencyUs: state.slowLatencyUs,
    heardUs: Math.max(state.heardUs, nowUs),
    history: (state.history << 1) | bit,
    heardCount,
    badShare: state.badShare + (bit - state.badShare) * weight,
    startedUs: Math.max(state.startedUs, startedUs),
    spacingUs: Math.ceil(state.spacingUs + (apartUs - state.spacingUs) * Math.max(SPACING_WEIGHT, 1 / heardCount)),
    latency: isTimed ? latencyAfter(state.latency, { latencyUs, startedUs, nowUs }) : state.latency,
  };
}

function isSlow({ latency }: AdaptiveState, factor: number): boolean {
  return latency !== undefined && isSlower(latency, factor);
}

function afterBad(rule: AdaptiveRule, state: AdaptiveState, { kind, nowUs }: Observation): AdaptiveState {
  if (kind === "rate_limited" || badCount(state, SHORT_LENGTH) >= SHORT_COUNT) {
    return slower(rule, state, { cut: CUT_MOST, factorMost: Number.POSITIVE_INFINITY, slowLatencyUs: 0, nowUs });
  }
  if (state.badShare < (state.gapUs > 0 ? BAD_SHARE_SLOWED : BAD_SHARE_FULL)) return state;
  const cut = Math.max(CUT_LEAST, state.badShare * CUT_MOST);
  return slower(rule, state, { cut, factorMost: DOUBT_FACTOR, slowLatencyUs: 0, nowUs });
}

function afterSlow(rule: AdaptiveRule, state: AdaptiveState, { nowUs }: Observation): AdaptiveState {
  const slowLatencyUs = state.latency?.recentUs ?? 0;
  return slower(rule, state, { cut: LATENCY_CUT, factorMost: DOUBT_FACTOR, slowLatencyUs, nowUs });
}

/** How to slow down, and why. */
interface Cut {
  /** The part of the pace to take off. */
  readonly cut: number;
  /** It makes the gap at most so many times that of full speed. */
  readonly factorMost: number;
  readonly slowLatencyUs: number;
  readonly nowUs: number;
}

function slower(rule: AdaptiveRule, state: AdaptiveState, by: Cut): AdaptiveState {
  const fullUs = fullOf(rule, state);
  const mostUs = Math.min(slowestOf(rule, fullUs), by.factorMost * fullUs);
  const paceUs = Math.max(fullUs, state.gapUs);
  const gapUs = Math.max(state.gapUs, Math.min(mostUs, Math.ceil(paceUs / (1 - by.cut))));
  const isAny = gapUs > fullUs;
  // Several cuts in a row go further down than need be: the first of them tells where the trouble began.
  const seriesUs = state.seriesUs > 0 ? state.seriesUs : paceUs;
  return {
    ...state,
    gapUs: isAny ? gapUs : 0,
    fullUs: isAny && rule.baseUs === 0 ? fullUs : 0,
    seriesUs: isAny ? seriesUs : 0,
    troubleUs: isAny ? seriesUs : 0,
    slowedUs: by.nowUs,
    slowLatencyUs: by.slowLatencyUs,
    // What comes after a cut is judged by itself.
    badShare: 0,
    latency: state.latency && judgedAnew(state.latency),
  };
}

function afterGood(rule: AdaptiveRule, state: AdaptiveState, seen: Observation): AdaptiveState {
  const { latencyUs = 0, startedUs, nowUs } = seen;
  if (state.gapUs === 0 || startedUs <= state.raisedUs) return state;
  if (nowUs < Math.max(state.raisedUs, state.slowedUs) + STEP_EVERY_US) return state;
  if (badCount(state, CALM_LENGTH) > 0 || isSlow(state, UNEASY_FACTOR)) return state;
  if (state.latency !== undefined && isLong(state.latency, latencyUs, UNEASY_FACTOR)) return state;
  const fullUs = fullOf(rule, state);
  const gapUs = Math.min(state.gapUs - 1, Math.ceil(steppedUs(state, fullUs)));
  const raised = { ...state, gapUs, seriesUs: 0, raisedUs: nowUs };
  if (gapUs <= fullUs) return { ...raised, gapUs: 0, fullUs: 0, troubleUs: 0 };
  return gapUs < state.troubleUs * (1 - NEAR) ? { ...raised, troubleUs: 0 } : raised;
}

/** The gap after a step up: a large one, but not past the edge of the last trouble's neighbourhood, where steps are small. */
function steppedUs({ gapUs, troubleUs }: AdaptiveState, fullUs: number): number {
  const nearUs = troubleUs * (1 + NEAR);
  if (gapUs <= nearUs) return gapUs / (1 + STEP_NEAR);
  return Math.max(nearUs, gapUs / (1 + Math.min(STEP_MOST, gapUs / (fullUs * STEPS_TO_FULL))));
}
