/** What a key remembers of how long its answers take. Times are whole microseconds. */
export interface LatencyState {
  /** What answers take now, and what they take when nothing is wrong: geometric means. */
  readonly recentUs: number;
  readonly usualUs: number;
  /** When the first request that counts here started, and how many answers said what is usual. */
  readonly firstUs: number;
  readonly firstCount: number;
  /** Answers that count as recent, up to 8. */
  readonly laterCount: number;
  /** When the request of the last answer that counts here started, and when it was answered. */
  readonly startedUs: number;
  readonly heardUs: number;
}

/** How long one answer took. */
export interface Timing {
  /** Any number from 0; what is outside 10 ms to 10 min counts as the nearer of the two. */
  readonly latencyUs: number;
  readonly startedUs: number;
  readonly nowUs: number;
}

/** What is shorter may be a delay of our own. */
const LEAST_US = 10_000;
const MOST_US = 600_000_000;
/** One answer counts as at most this many times slower or faster than usual. */
const OUTLIER_FACTOR = 8;

/** What is usual is learned from the first eight answers, or from all to requests of the first second if these are more. */
const FIRST_LEAST = 8;
const FIRST_US = 1_000_000;
/** Before anything is compared with it, the rest of those answers get three times the usual latency to come, and eight others have to come. */
const FIRST_FACTOR = 3;
const LATER_LEAST = 8;

/** The recent latency is that of the last 16 answers, or of the last 1.6 s if there were more. */
const RECENT_WEIGHT = 1 / 16;
const RECENT_US = 1_600_000;
/** The usual one follows it down within eight answers or five seconds. Up it doubles in five minutes at most, of which a silence counts as one. */
const FALL_WEIGHT = 1 / 8;
const FALL_US = 5_000_000;
const DOUBLES_US = 300_000_000;
const SILENCE_MOST_US = 60_000_000;

/**
 * What is known after one more answer.
 *
 * The usual latency follows the low points of the recent one: soon down, slowly up, so that an overload does not pass for usual before long
 * and a lasting change does.
 */
export function latencyAfter(state: LatencyState | undefined, timing: Timing): LatencyState {
  const { startedUs, nowUs } = timing;
  const clampedUs = Math.ceil(Math.min(MOST_US, Math.max(LEAST_US, timing.latencyUs)));
  if (state === undefined) {
    const firstUs = startedUs;
    const means = { recentUs: clampedUs, usualUs: clampedUs };
    return { ...means, firstUs, firstCount: 1, laterCount: 0, startedUs, heardUs: nowUs };
  }
  const { usualUs, recentUs, firstCount } = state;
  const takenUs = usualUs * Math.min(OUTLIER_FACTOR, Math.max(1 / OUTLIER_FACTOR, clampedUs / usualUs));
  // Those heard first are the fastest of many, and those started later may be slow because of us: the first started count.
  if (firstCount < FIRST_LEAST || startedUs <= state.firstUs + FIRST_US) {
    const meanUs = towards(usualUs, takenUs, 1 / (firstCount + 1));
    const isAlone = state.laterCount === 0;
    const newest = { startedUs: Math.max(state.startedUs, startedUs), heardUs: Math.max(state.heardUs, nowUs) };
    return { ...state, ...newest, firstCount: firstCount + 1, usualUs: meanUs, recentUs: isAlone ? meanUs : recentUs };
  }
  // The last of a burst to be heard are the slowest, and after a hang of our own many are heard at once: neither moves anything.
  const sinceUs = Math.min(startedUs - state.startedUs, nowUs - state.heardUs);
  if (sinceUs <= 0) return state;
  const nextUs = towards(recentUs, takenUs, Math.min(RECENT_WEIGHT, sinceUs / RECENT_US));
  return {
    recentUs: nextUs,
    usualUs: isUsualKnown(state) ? usualAfter(usualUs, nextUs, sinceUs) : usualUs,
    firstUs: state.firstUs,
    firstCount,
    laterCount: Math.min(LATER_LEAST, state.laterCount + 1),
    startedUs,
    heardUs: nowUs,
  };
}

/** Whether answers take more than `factor` times as long as usual. False as long as too few are known. */
export function isSlower(state: LatencyState, factor: number): boolean {
  return state.laterCount === LATER_LEAST && isUsualKnown(state) && state.recentUs > factor * state.usualUs;
}

/** Whether one answer took more than `factor` times as long as usual. False as long as too few are known. */
export function isLong(state: LatencyState, latencyUs: number, factor: number): boolean {
  return isUsualKnown(state) && latencyUs > factor * state.usualUs;
}

/** The same, with the recent latency to be found out anew. */
export function judgedAnew(state: LatencyState): LatencyState {
  return { ...state, recentUs: state.usualUs };
}

function usualAfter(usualUs: number, recentUs: number, sinceUs: number): number {
  if (recentUs < usualUs) return towards(usualUs, recentUs, Math.min(FALL_WEIGHT, sinceUs / FALL_US));
  return Math.min(recentUs, Math.ceil(usualUs * 2 ** (Math.min(sinceUs, SILENCE_MOST_US) / DOUBLES_US)));
}

function isUsualKnown({ firstUs, heardUs, usualUs }: LatencyState): boolean {
  return heardUs >= firstUs + FIRST_US + FIRST_FACTOR * usualUs;
}

/** Goes `weight` of the way on a scale of ratios. A mean made so is hardly moved by a few long answers. */
function towards(fromUs: number, toUs: number, weight: number): number {
  return Math.ceil(fromUs * (toUs / fromUs) ** weight);
}
