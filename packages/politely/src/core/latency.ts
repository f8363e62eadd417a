/** What is shorter may be a delay of our own. */
const LEAST_US = 10_000;
const MOST_US = 600_000_000;
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
  const clampedUs = Math.ceil(Math.min(MOST_US, Math.max(LEAST_US, latencyUs)));
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
