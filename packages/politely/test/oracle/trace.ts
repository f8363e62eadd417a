/** One start, as the oracle sees it. Instants are whole microseconds of the limiter's clock. */
export interface Start {
  readonly atUs: number;
  readonly cost: number;
  /** When it was released; absent while in flight. */
  readonly releasedUs?: number | undefined;
  /** It was returned `unused`: the site never saw it. */
  readonly unused?: boolean;
  /** Every key it was counted under. */
  readonly keys?: readonly string[];
}

/** A stretch of time in which nothing may start. */
export interface Hold {
  readonly fromUs: number;
  readonly untilUs: number;
}

/** Rounds an instant in milliseconds to the whole microsecond it stands for. */
export function toUs(ms: number): number {
  return Math.round(ms * 1000);
}

/** The starts counted under `key`, in the order they were made. */
export function startsOf(trace: readonly Start[], key: string): Start[] {
  return inOrder(trace.filter((start) => start.keys?.includes(key) ?? true));
}

/** The same starts by time; those of one instant keep their order. */
export function inOrder(trace: readonly Start[]): Start[] {
  return [...trace].sort((a, b) => a.atUs - b.atUs);
}
