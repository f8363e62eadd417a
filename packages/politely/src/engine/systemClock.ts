import type { Clock } from "../types.js";

/** So many turns without the clock moving are not a wait: the clock is coarse, or a test framework holds it still. */
const MAX_STILL_POLLS = 64;
/** With so much slack a plain timer is sharp enough. */
const SLACK_FOR_PLAIN_MS = 1.5;
/** A timer expected to land no later than this after its instant is left alone. */
const LATE_ALLOWED_MS = 0.05;
/** `setTimeout` calls at once for anything longer. */
const MAX_DELAY_MS = 2 ** 31 - 1;
/** How far one observation moves the estimate of a timer's latency. Steps of one size follow the median, whatever the outliers. */
const LEARN_MS = 0.01;

/**
 * Decides how long to sleep towards an instant with timers of whole milliseconds, and whether to poll for the rest.
 *
 * A timer of `d` ms lands at `d` plus a latency that hardly varies on one machine and is learnt here. What that leaves of the wait is polled. If polling costs more
 * than the budget has saved up, one timer lands after the instant instead, by less than 1 ms plus the error of the estimate.
 */
export class WakePlan {
  readonly #share: number;
  readonly #savedMs: number;
  #creditMs: number;
  #creditAtMs = Number.NaN;
  #latencyMs = 0.1;

  /** `share`: of one core, that polling may use in the long run; 0 means plain timers. `savedMs`: as much may be saved up, at the start and after idle time. */
  constructor({ share = 0.03, savedMs = 4 } = {}) {
    this.#share = share;
    this.#savedMs = savedMs;
    this.#creditMs = share > 0 ? savedMs : 0;
  }

  /** The whole milliseconds to sleep next when the instant is `leftMs` away; 0 means poll until it is there. At most 2^31 - 1: a longer wait takes several sleeps. */
  nextDelayMs(leftMs: number, nowMs: number): number {
    const aimMs = leftMs - this.#latencyMs + LATE_ALLOWED_MS;
    const wholeMs = Math.max(0, Math.floor(aimMs));
    const pollMs = wholeMs === 0 ? leftMs : aimMs - wholeMs - LATE_ALLOWED_MS;
    const isAffordable = pollMs <= 0 || pollMs <= this.#creditAt(nowMs);
    return Math.min(isAffordable ? wholeMs : Math.max(1, Math.ceil(aimMs)), MAX_DELAY_MS);
  }

  /** Learns from a timer that called `lateMs` after its time. Early calls and stalls of the event loop teach nothing. */
  landed(lateMs: number): void {
    if (lateMs >= 0 && lateMs < 1) this.#latencyMs += lateMs > this.#latencyMs ? LEARN_MS : -LEARN_MS;
  }

  /** Takes time spent polling out of the budget. */
  spend(pollMs: number): void {
    this.#creditMs -= Math.max(0, pollMs);
  }

  #creditAt(nowMs: number): number {
    const earnedMs = (nowMs - this.#creditAtMs) * this.#share;
    if (earnedMs > 0) this.#creditMs = Math.min(this.#savedMs, this.#creditMs + earnedMs);
    this.#creditAtMs = nowMs;
    return this.#creditMs;
  }
}

const plainPlan = new WakePlan({ share: 0 });
/** All clocks of the process share one budget, so that ten limiters do not poll ten times as much. */
const processPlan = new WakePlan();

/**
 * Makes a clock of the machine's monotonic time, with timers that call within about 0.2 ms after their instant and
 * never before it.
 *
 * With slack of 1.5 ms or more a plain timer calls up to about 1 ms late.
 *
 * Sharpness costs about 3 % of a core in the whole process at most. Where more would be needed, a hundred timers a
 * second say, some call up to about 1 ms late; so they do where the platform's clock is coarse. An instant that has
 * passed (or is not a number) is called in the next turn of the event loop; one further away than 2^31 ms is waited for
 * in pieces. A pending timer keeps the process alive. `clearTimer` ignores what is no timer or has been called.
 */
export function systemClock(platform: ClockPlatform = globalPlatform(), plan: WakePlan = processPlan): Clock {
  const { now, wall } = platform;
  return {
    now,
    wall,
    // Timers count from the beginning of the turn of the event loop, cut to whole milliseconds.
    earlyMs: 1,
    setTimer: (atMs, fn, slackMs = 0) =>
      new SharpTimer(atMs, fn, platform, slackMs >= SLACK_FOR_PLAIN_MS ? plainPlan : plan),
    clearTimer(timer) {
      if (timer instanceof SharpTimer) timer.cancel();
    },
    unref(timer) {
      if (timer instanceof SharpTimer) timer.unref();
    },
  };
}

/** One call that is asked for, and how far it has come. */
class SharpTimer {
  /** What cancels the present phase; undefined once it is done. */
  #handle: unknown = undefined;
  #isSleeping = false;
  #phaseFromMs = 0;
  /** What `setTimeout` was asked for while sleeping. */
  #delayMs = 0;
  #polledAtMs = 0;
  #stillPolls = 0;
  #isLoose = false;

  constructor(
    readonly atMs: number,
    public fn: () => void,
    readonly platform: ClockPlatform,
    readonly plan: WakePlan,
  ) {
    this.#arm(platform.now());
  }

  /** Goes to sleep, or to polling when no sleep is short enough. */
  #arm(nowMs: number): void {
    const { atMs, platform, plan } = this;
    const delayMs = atMs > nowMs ? plan.nextDelayMs(atMs - nowMs, nowMs) : 0;
    if (delayMs > 0) this.#sleep(nowMs, delayMs);
    else {
      this.#isSleeping = false;
      this.#phaseFromMs = nowMs;
      this.#handle = platform.setImmediate(poll, this);
    }
  }

  #sleep(nowMs: number, delayMs: number): void {
    this.#isSleeping = true;
    this.#phaseFromMs = nowMs;
    this.#delayMs = delayMs;
    this.#handle = this.platform.setTimeout(wake, delayMs, this);
    if (this.#isLoose) this.unref();
  }

  /**
   * The process need not wait for it, where the platform's timers can be told so.
   *
   * Only while it sleeps: a turn of the loop that need not keep the process does not wake a loop that has nothing else to do either,
   * and polling is over within a millisecond.
   */
  unref(): void {
    this.#isLoose = true;
    if (this.#isSleeping) (this.#handle as { unref?: () => void } | undefined)?.unref?.();
  }

  wake(): void {
    const nowMs = this.platform.now();
    this.plan.landed(nowMs - this.#phaseFromMs - this.#delayMs);
    if (nowMs >= this.atMs) this.#call();
    else this.#arm(nowMs);
  }

  poll(): void {
    const { atMs, platform, plan } = this;
    const nowMs = platform.now();
    this.#stillPolls = nowMs > this.#polledAtMs ? 0 : this.#stillPolls + 1;
    this.#polledAtMs = nowMs;
    if (!(nowMs < atMs)) {
      // Not up to now: time that other work of the loop took is not ours.
      plan.spend(atMs - this.#phaseFromMs);
      this.#call();
    } else if (this.#stillPolls < MAX_STILL_POLLS) this.#handle = platform.setImmediate(poll, this);
    else {
      plan.spend(nowMs - this.#phaseFromMs);
      this.#sleep(nowMs, Math.max(1, Math.ceil(atMs - nowMs)));
    }
  }

  #call(): void {
    const { fn } = this;
    this.#finish();
    fn();
  }

  cancel(): void {
    if (this.#handle === undefined) return;
    const { platform, plan } = this;
    if (this.#isSleeping) platform.clearTimeout(this.#handle);
    else {
      platform.clearImmediate(this.#handle);
      plan.spend(this.#polledAtMs - this.#phaseFromMs);
    }
    this.#finish();
  }

  /** Lets go of what the caller gave as well, since the caller may keep the timer. */
  #finish(): void {
    this.#handle = undefined;
    this.fn = nothing;
  }
}

// One function each for all timers.
const wake = (timer: SharpTimer): void => timer.wake();
const poll = (timer: SharpTimer): void => timer.poll();
const nothing = (): void => undefined;

/** The functions of the platform that the system clock calls. Tests pass their own. */
export interface ClockPlatform {
  /** Monotonic milliseconds with fractions. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  /**
   * Calls `fn(argument)` after about `delayMs`, a whole number from 1 to 2^31 - 1. Keeps the process alive until then.
   */
  readonly setTimeout: <T>(fn: (argument: T) => void, delayMs: number, argument: T) => unknown;
  readonly clearTimeout: (handle: unknown) => void;
  /**
   * Calls `fn(argument)` in the next turn of the event loop, never before returning. Keeps the process alive until
   * then.
   */
  readonly setImmediate: <T>(fn: (argument: T) => void, argument: T) => unknown;
  readonly clearImmediate: (handle: unknown) => void;
}

/** What the global object of a platform may offer, without its `this`. */
type PlatformGlobal = Pick<ClockPlatform, "setTimeout" | "clearTimeout"> &
  Partial<Pick<ClockPlatform, "setImmediate" | "clearImmediate">> & {
    readonly performance: { now(): number };
  };

/**
 * Collects the functions of the platform this runs on, as they are at the time of the call.
 *
 * Turns of the event loop come from `setImmediate` (Node, Bun, Deno), else from `setTimeout`, which browsers stretch to 4 ms. Timers replaced by a test
 * framework before the call are used as they are.
 */
export function globalPlatform(): ClockPlatform {
  const global = globalThis as unknown as PlatformGlobal;
  // Looked up once: on some platforms `performance` is a getter that costs more than the reading itself.
  const { performance } = global;
  const setTimeout = global.setTimeout.bind(global);
  const clearTimeout = global.clearTimeout.bind(global);
  const timers = { now: () => performance.now(), wall: () => Date.now(), setTimeout, clearTimeout };
  if (global.setImmediate === undefined || global.clearImmediate === undefined) {
    return { ...timers, setImmediate: (fn, argument) => setTimeout(fn, 0, argument), clearImmediate: clearTimeout };
  }
  const setImmediate = global.setImmediate.bind(global);
  return { ...timers, setImmediate, clearImmediate: global.clearImmediate.bind(global) };
}

/** A clock reading as a whole number of microseconds. A hundredth of one absorbs the rounding of binary fractions of a millisecond. */
export function toUs(ms: number): number {
  return Math.floor(ms * 1000 + 0.01);
}

/** The first reading in milliseconds that `toUs` does not put before `us`. */
export function toMsAtOrAfter(us: number): number {
  const ms = us / 1000;
  return toUs(ms) >= us ? ms : (us + 1) / 1000;
}

/** The one timer for all keys and waiters. */
export class OneTimer {
  #timer: unknown = undefined;
  #atUs = Number.POSITIVE_INFINITY;

  constructor(
    readonly clock: Clock,
    readonly onTime: () => void,
  ) {}

  /** Has `onTime` called at `atUs` or before, late by `slackUs` without losing anything; Infinity: not at all. */
  set(atUs: number, slackUs: number): void {
    // One that fires too early only makes its owner look once more, so it is left alone.
    if (this.#atUs <= atUs && atUs !== Number.POSITIVE_INFINITY) return;
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    this.#atUs = atUs;
    this.#timer = undefined;
    if (atUs === Number.POSITIVE_INFINITY) return;
    this.#timer = this.clock.setTimer(toMsAtOrAfter(atUs), this.#fired, slackUs / 1000);
  }

  readonly #fired = (): void => {
    this.#timer = undefined;
    this.#atUs = Number.POSITIVE_INFINITY;
    this.onTime();
  };
}
