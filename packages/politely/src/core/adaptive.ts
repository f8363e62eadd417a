import type { Heard } from "./answer.js";
import type { Slowdown } from "./key.js";
import type { AdaptiveRule } from "./rule.js";

// How far a key is slowed down by what its site answers: a gap that bad and slow answers lengthen at once, and good ones shorten step by step.
// docs/decisions/0004-adaptive.md says why these numbers.

const NEVER = Number.NEGATIVE_INFINITY;
/** How long what was learned outlives the last answer; twice the gap where that is longer. */
export const ADAPTIVE_MEMORY_US = 3_600_000_000;
/** Slow answers, or a few bad ones, slow a key down to an eighth of full speed: if that does not help, load is not the reason. */
const DOUBT_FACTOR = 8;
/** Bad answers count by their share of the last 32, or of the last 5 s if there were more. */
const HISTORY = 32;
const SHARE_US = 5_000_000;
const STEP_EVERY_US = 1_000_000;
/** A start a minute. */
const SLOWEST_US = 60_000_000;
/** How far around the last trouble steps up are small. */
const NEAR = 1 / 8;

/** What is shorter may be a delay of our own. */
const LATENCY_LEAST_US = 10_000;
const LATENCY_MOST_US = 600_000_000;
/** One answer counts as at most this many times slower or faster than usual. */
const OUTLIER_FACTOR = 8;
/** What is usual is learned from the first eight answers, or from all to requests of the first second if these are more. */
const FIRST_LEAST = 8;
const FIRST_US = 1_000_000;
/** Nothing is compared with it before the rest of those answers had three times the usual latency to come. */
const FIRST_FACTOR = 3;
/** The recent latency is that of the last 16 answers, or of the last 1.6 s if there were more. */
const RECENT_WEIGHT = 1 / 16;
const RECENT_US = 1_600_000;
/** The usual one follows it down within eight answers or five seconds. Up it doubles in five minutes at most, of which a silence counts as one. */
const FALL_WEIGHT = 1 / 8;
const FALL_US = 5_000_000;
const DOUBLES_US = 300_000_000;
const SILENCE_MOST_US = 60_000_000;

/** All that a key remembers of its answers. As a slowdown it has no end but being forgotten. */
export class Adaptive implements Slowdown {
  /** The least time between two starts. 0: full speed, where the policy alone rules. */
  gapUs = 0;
  readonly holdUntilUs = NEVER;
  untilUs = Number.POSITIVE_INFINITY;
  because = "";
  /** Where the policy sets no pace: the gap that counts as full speed until it is reached again. */
  fullUs = 0;
  /** The gap at which the last trouble began, near which steps up are small. 0: none. */
  troubleUs = 0;
  /** When it was last made slower, and faster. Answers to requests started before the last cut change nothing. */
  slowedUs = NEVER;
  raisedUs = NEVER;
  heardUs = NEVER;
  /** The last answers, one bit each, the newest lowest: 1 for a bad one. */
  history = 0;
  heardCount = 0;
  /** The share of bad answers since the last cut. */
  badShare = 0;
  /** The latest start that was answered, and the mean time between such starts, as far as something was in flight. */
  startedUs = NEVER;
  spacingUs = 0;
  latency: Latency | undefined = undefined;
}

/**
 * Learns from one more answer.
 *
 * The gap is 0 or longer than full speed's, and never longer than the rule's slowest. A bad answer never makes it shorter; a success does, by one small
 * step per round trip. Answers to requests that were under way when it was last made slower change nothing, so that any number of failures in flight make one cut.
 */
export function learn(rule: AdaptiveRule, state: Adaptive, seen: Heard): void {
  if (seen.nowUs >= state.heardUs + Math.max(ADAPTIVE_MEMORY_US, 2 * state.gapUs)) Object.assign(state, new Adaptive());
  else fitRule(rule, state);
  if (seen.startedUs > state.slowedUs) {
    note(state, seen);
    const { latency } = state;
    if (seen.kind !== "success") afterBad(rule, state, seen);
    else if (latency !== undefined && isSlow(latency, latency.recentUs, 3)) {
      state.because = `answers take ${inWords(latency.recentUs)}, usually ${inWords(latency.usualUs)}`;
      slowDown(rule, state, 0.3, DOUBT_FACTOR, seen.nowUs);
    } else afterGood(rule, state, seen);
  }
  state.heardUs = Math.max(state.heardUs, seen.nowUs);
  state.untilUs = state.heardUs + Math.max(ADAPTIVE_MEMORY_US, 2 * state.gapUs);
}

/** Keeps what was learned as far as another rule allows. */
export function fitRule(rule: AdaptiveRule, state: Adaptive): void {
  const fullUs = fullOf(rule, state);
  state.gapUs = Math.min(state.gapUs, slowestOf(rule, fullUs));
  if (state.gapUs <= fullUs) Object.assign(state, { gapUs: 0, fullUs: 0, troubleUs: 0 });
}

/** The gap of full speed. Where the policy sets no pace it is the mean one seen, and at least 1 ms. */
function fullOf(rule: AdaptiveRule, state: Adaptive): number {
  return rule.baseUs || state.fullUs || Math.max(1_000, state.spacingUs);
}

/** As slow as the rule allows: by default a 64th of full speed, but not below a start a minute. */
function slowestOf(rule: AdaptiveRule, fullUs: number): number {
  return Math.max(fullUs, rule.slowestUs || Math.min(64 * fullUs, SLOWEST_US));
}

function note(state: Adaptive, { kind, latencyUs, startedUs, nowUs }: Heard): void {
  const bit = kind === "success" ? 0 : 1;
  const isFew = state.heardCount < HISTORY;
  if (isFew) state.heardCount += 1;
  const share = isFew ? 1 / state.heardCount : Math.min(1 / HISTORY, Math.max(0, nowUs - state.heardUs) / SHARE_US);
  state.badShare += (bit - state.badShare) * share;
  state.history = (state.history << 1) | bit;
  // Time in which nothing was in flight says nothing about the pace.
  const apartUs = Math.max(0, Math.min(startedUs - state.startedUs, nowUs - startedUs, SLOWEST_US));
  state.spacingUs = Math.ceil(state.spacingUs + (apartUs - state.spacingUs) * Math.max(1 / 16, 1 / state.heardCount));
  state.startedUs = Math.max(state.startedUs, startedUs);
  // An error may come at once, and a timeout comes when the caller says so: only successes say what answers take.
  if (bit === 1 || latencyUs === undefined || latencyUs < 0) return;
  state.latency ??= new Latency(startedUs);
  noteLatency(state.latency, latencyUs, startedUs, nowUs);
}

function badAmong(history: number, length: number): number {
  let count = 0;
  for (let index = 0; index < length; index++) count += (history >>> index) & 1;
  return count;
}

function afterBad(rule: AdaptiveRule, state: Adaptive, { kind, nowUs, because }: Heard): void {
  // Five of the last eight leave no doubt. Else it takes a tenth, and once the pace was cut a sixteenth.
  const isCertain = kind === "rate_limited" || badAmong(state.history, 8) >= 5;
  if (!isCertain && state.badShare < (state.gapUs > 0 ? 1 / 16 : 1 / 10)) return;
  const count = badAmong(state.history, HISTORY);
  state.because = `${count} of its last ${state.heardCount} answers ${count === 1 ? "was" : "were"} bad, the latest: ${because}`;
  const cut = isCertain ? 0.5 : Math.max(0.25, state.badShare / 2);
  slowDown(rule, state, cut, isCertain ? Number.POSITIVE_INFINITY : DOUBT_FACTOR, nowUs);
}

/** Takes a part `cut` off the pace, down to full speed divided by `factorMost`. */
function slowDown(rule: AdaptiveRule, state: Adaptive, cut: number, factorMost: number, nowUs: number): void {
  const fullUs = fullOf(rule, state);
  const paceUs = Math.max(fullUs, state.gapUs);
  // Several cuts in a row go further down than need be: the first of them says where the trouble began.
  if (state.troubleUs === 0 || state.raisedUs > state.slowedUs) state.troubleUs = paceUs;
  state.fullUs = fullUs;
  state.gapUs = Math.max(state.gapUs, Math.min(factorMost * fullUs, Math.ceil(paceUs / (1 - cut))));
  fitRule(rule, state);
  state.slowedUs = nowUs;
  // What comes after a cut is judged by itself.
  state.badShare = 0;
  if (state.latency !== undefined) state.latency.recentUs = state.latency.usualUs;
}

/** A step up: a 32nd of full speed and at most a quarter of the pace, at most one a second and one per round trip. */
function afterGood(rule: AdaptiveRule, state: Adaptive, { latencyUs = 0, startedUs, nowUs }: Heard): void {
  const { gapUs, latency, raisedUs, slowedUs, troubleUs } = state;
  if (gapUs === 0 || startedUs <= raisedUs || nowUs < Math.max(raisedUs, slowedUs) + STEP_EVERY_US) return;
  // Two good answers in a row, and none that took twice as long as usual.
  if (badAmong(state.history, 2) > 0) return;
  if (latency !== undefined && isSlow(latency, Math.max(latency.recentUs, latencyUs), 2)) return;
  // A large step does not go past the edge of the last trouble's neighbourhood, where it is a 512th of the pace.
  const nearUs = troubleUs * (1 + NEAR);
  const largeUs = gapUs / (1 + Math.min(0.25, gapUs / (fullOf(rule, state) * 32)));
  state.gapUs = Math.min(gapUs - 1, Math.ceil(gapUs <= nearUs ? gapUs / (1 + 1 / 512) : Math.max(nearUs, largeUs)));
  state.raisedUs = nowUs;
  if (state.gapUs < troubleUs * (1 - NEAR)) state.troubleUs = 0;
  fitRule(rule, state);
}

function inWords(us: number): string {
  return us < 1_000_000 ? `${Math.ceil(us / 1000)} ms` : `${Math.ceil(us / 100_000) / 10} s`;
}

/** What a key remembers of how long its answers take. */
export class Latency {
  /** What answers take now, and what they take when nothing is wrong: geometric means. */
  recentUs = 0;
  usualUs = 0;
  firstCount = 0;
  heardUs = Number.NEGATIVE_INFINITY;

  /** The start of the first request that counts here, and of the last one. */
  constructor(
    readonly firstUs: number,
    public startedUs = firstUs,
  ) {}
}

/**
 * Notes one more answer. The usual latency follows the low points of the recent one: soon down, slowly up, so that an overload does not
 * pass for usual before long and a lasting change does.
 */
export function noteLatency(state: Latency, latencyUs: number, startedUs: number, nowUs: number): void {
  const clampedUs = Math.ceil(Math.min(LATENCY_MOST_US, Math.max(LATENCY_LEAST_US, latencyUs)));
  const usualUs = state.usualUs || clampedUs;
  const takenUs = usualUs * Math.min(OUTLIER_FACTOR, Math.max(1 / OUTLIER_FACTOR, clampedUs / usualUs));
  const sinceUs = Math.min(startedUs - state.startedUs, nowUs - state.heardUs);
  // Those heard first are the fastest of many, and those started later may be slow because of us: the first started count.
  if (state.firstCount < FIRST_LEAST || startedUs <= state.firstUs + FIRST_US) {
    state.firstCount += 1;
    state.usualUs = towards(usualUs, takenUs, 1 / state.firstCount);
    state.recentUs = state.usualUs;
  } else if (sinceUs > 0) {
    state.recentUs = towards(state.recentUs, takenUs, Math.min(RECENT_WEIGHT, sinceUs / RECENT_US));
    const risenUs = Math.ceil(usualUs * 2 ** (Math.min(sinceUs, SILENCE_MOST_US) / DOUBLES_US));
    const fall = Math.min(FALL_WEIGHT, sinceUs / FALL_US);
    const isFalling = state.recentUs < usualUs;
    state.usualUs = isFalling ? towards(usualUs, state.recentUs, fall) : Math.min(state.recentUs, risenUs);
    // The last of a burst to be heard are the slowest, and after a hang of our own many are heard at once: neither moves anything.
  } else return;
  state.startedUs = Math.max(state.startedUs, startedUs);
  state.heardUs = Math.max(state.heardUs, nowUs);
}

/** Whether `latencyUs` is more than `factor` times as long as usual. False as long as too little is known. */
export function isSlow({ firstUs, heardUs, usualUs }: Latency, latencyUs: number, factor: number): boolean {
  return heardUs >= firstUs + FIRST_US + FIRST_FACTOR * usualUs && latencyUs > factor * usualUs;
}

/** Goes `weight` of the way on a scale of ratios. A mean made so is hardly moved by a few long answers. */
function towards(fromUs: number, toUs: number, weight: number): number {
  return Math.ceil(fromUs * (toUs / fromUs) ** weight);
}
