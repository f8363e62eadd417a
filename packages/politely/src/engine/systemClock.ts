import type { Clock } from "../types.js";
import { type ClockPlatform, globalPlatform } from "./systemClockPlatform.js";
import { WakePlan } from "./wakePlan.js";

/** So many turns without the clock moving are not a wait: the clock is coarse, or a test framework holds it still. */
const MAX_STILL_POLLS = 64;

/** With so much slack a plain timer is sharp enough. */
const SLACK_FOR_PLAIN_MS = 2;
const plainPlan = new WakePlan({ share: 0 });
/** Instants closer than this come several to a timer: then a sleep may take this part of the slack, and so long at most. */
const DENSE_MS = 0.1;
const DENSE_SLEEP_SHARE = 1 / 4;
const DENSE_SLEEP_MOST_MS = 5;

/** All clocks of the process share one budget, so that ten limiters do not poll ten times as much. */
const processPlan = new WakePlan();

/**
 * Makes a clock of the machine's monotonic time, with timers that call within about 0.2 ms after their instant and
 * never before it.
 *
 * With slack of 2 ms or more a plain timer calls up to about 1 ms late. Where the instant is less than 0.1 ms away as well, so that many starts share each call, it may
 * sleep for a quarter of the slack, 5 ms at most: as many start, and the process wakes less often.
 *
 * Sharpness costs about 3 % of a core in the whole process at most. Where more would be needed, a hundred timers a
 * second say, some call up to about 1 ms late; so they do where the platform's clock is coarse. An instant that has
 * passed (or is not a number) is called in the next turn of the event loop; one further away than 2^31 ms is waited for
 * in pieces. A pending timer keeps the process alive. `clearTimer` ignores what is no timer or has been called.
 */
export function systemClock(platform: ClockPlatform = globalPlatform(), plan: WakePlan = processPlan): Clock {
  const { now, wall, setImmediate } = platform;

  return {
    now,
    wall,
    // Timers count from the beginning of the turn of the event loop, cut to whole milliseconds.
    earlyMs: 1,
    setTimer(atMs, fn, slackMs = 0) {
      const timer = new SharpTimer(atMs, fn, platform, slackMs >= SLACK_FOR_PLAIN_MS ? plainPlan : plan);
      const nowMs = now();
      const denseMs = atMs - nowMs < DENSE_MS ? denseSleepMs(slackMs) : 0;
      if (!(atMs > nowMs)) timer.handle = setImmediate(call, timer);
      else if (denseMs > platform.minDelayMs) sleep(timer, nowMs, denseMs);
      else arm(timer, nowMs);
      return timer;
    },
    clearTimer(timer) {
      if (timer instanceof SharpTimer) cancel(timer);
    },
    unref(timer) {
      if (!(timer instanceof SharpTimer)) return;
      timer.isLoose = true;
      loosen(timer);
    },
  };
}

/** How long to sleep, in whole milliseconds, towards one of many instants. */
function denseSleepMs(slackMs: number): number {
  return Math.min(DENSE_SLEEP_MOST_MS, Math.floor(slackMs * DENSE_SLEEP_SHARE));
}

/** One call that is asked for, and how far it has come. */
class SharpTimer {
  phase: "sleeping" | "polling" | "due" | "done" = "due";
  /** What cancels the present phase. */
  handle: unknown = undefined;
  phaseFromMs = 0;
  /** What `setTimeout` was asked for while sleeping. */
  delayMs = 0;
  polledAtMs = 0;
  stillPolls = 0;
  /** The process need not wait for it. */
  isLoose = false;

  constructor(
    readonly atMs: number,
    public fn: () => void,
    readonly platform: ClockPlatform,
    readonly plan: WakePlan,
  ) {}
}

/** Goes to sleep, or to polling when no sleep is short enough. */
function arm(timer: SharpTimer, nowMs: number): void {
  const { platform, plan } = timer;
  const delayMs = plan.nextDelayMs(timer.atMs - nowMs, nowMs, platform.minDelayMs);
  if (delayMs > 0) {
    sleep(timer, nowMs, delayMs);
  } else {
    timer.phase = "polling";
    timer.phaseFromMs = nowMs;
    timer.polledAtMs = nowMs;
    timer.handle = platform.setImmediate(poll, timer);
  }
}

function sleep(timer: SharpTimer, nowMs: number, delayMs: number): void {
  timer.phase = "sleeping";
  timer.phaseFromMs = nowMs;
  timer.delayMs = delayMs;
  timer.handle = timer.platform.setTimeout(wake, delayMs, timer);
  loosen(timer);
}

/**
 * Node's timers can be told not to keep the process; others have no such thing.
 *
 * Only while it sleeps: a turn of the loop that need not keep the process does not wake a loop that has nothing else to do either,
 * and polling is over within a millisecond.
 */
function loosen({ isLoose, handle, phase }: SharpTimer): void {
  if (!isLoose || phase !== "sleeping" || typeof handle !== "object" || handle === null) return;
  (handle as { unref?(): void }).unref?.();
}

function wake(timer: SharpTimer): void {
  const nowMs = timer.platform.now();
  timer.plan.landed(nowMs - timer.phaseFromMs - timer.delayMs);
  if (nowMs >= timer.atMs) {
    call(timer);
  } else {
    timer.plan.spendStep();
    arm(timer, nowMs);
  }
}

function poll(timer: SharpTimer): void {
  const { platform, plan } = timer;
  const nowMs = platform.now();
  if (nowMs >= timer.atMs) {
    // Not up to now: time that other work of the loop took is not ours.
    plan.spendPolling(timer.atMs - timer.phaseFromMs);
    call(timer);
    return;
  }
  timer.stillPolls = nowMs > timer.polledAtMs ? 0 : timer.stillPolls + 1;
  timer.polledAtMs = nowMs;
  if (timer.stillPolls < MAX_STILL_POLLS) {
    timer.handle = platform.setImmediate(poll, timer);
  } else {
    plan.spendPolling(nowMs - timer.phaseFromMs);
    sleep(timer, nowMs, Math.max(platform.minDelayMs, Math.ceil(timer.atMs - nowMs)));
  }
}

function call(timer: SharpTimer): void {
  const { fn } = timer;
  finish(timer);
  fn();
}

function cancel(timer: SharpTimer): void {
  const { phase, platform, plan } = timer;
  if (phase === "done") return;
  if (phase === "sleeping") platform.clearTimeout(timer.handle);
  else platform.clearImmediate(timer.handle);
  if (phase === "polling") plan.spendPolling(timer.polledAtMs - timer.phaseFromMs);
  finish(timer);
}

/** Lets go of what the caller gave as well, since the caller may keep the timer. */
function finish(timer: SharpTimer): void {
  timer.phase = "done";
  timer.handle = undefined;
  timer.fn = nothing;
}

function nothing(): void {}
