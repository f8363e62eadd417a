/** More than this between two looks at the clock was not a wait: the process was stopped, or busy with something else. */
const LONGEST_STEP_MS = 10;

/**
 * Counts the time for which this thread has really been waiting.
 *
 * When a process is stopped and goes on an hour later, all its threads were stopped: nobody has kept another waiting for an hour.
 */
export class RunningTime {
  private totalMs = 0;
  private lastMs: number;

  constructor(private readonly now: () => number) {
    this.lastMs = now();
  }

  /** Milliseconds since the start. Each call adds what has passed since the one before, 10 ms at most. */
  ms(): number {
    const nowMs = this.now();
    this.totalMs += Math.min(Math.max(0, nowMs - this.lastMs), LONGEST_STEP_MS);
    this.lastMs = nowMs;
    return this.totalMs;
  }
}

/** Notices that something has not changed for a while. */
export class Patience {
  private seen: number | undefined = undefined;
  private sinceMs = 0;

  constructor(private readonly longestMs: number) {}

  /** Whether `sign` has been the same in every look for the longest time. */
  isOver(sign: number, nowMs: number): boolean {
    if (sign !== this.seen) {
      this.seen = sign;
      this.sinceMs = nowMs;
    }
    return nowMs - this.sinceMs >= this.longestMs;
  }
}
