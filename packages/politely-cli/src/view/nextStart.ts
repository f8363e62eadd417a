import type { Explanation } from "politely";

/** Limits whose starts come one after the other, each as long after the last as the one before. */
const SPACED: readonly string[] = ["minDelay", "rate", "headers"];

/**
 * How long until the next start at a host, in milliseconds: at most that, and at most one gap more than it is.
 *
 * An explanation speaks of somebody who asks now and is behind all others. So the queue is left out, what is spaced evenly is divided by those who
 * are ahead, and a window is taken to have room after `windowFreeMs`, where that is known.
 */
export function nextStartMs({ causes, ahead }: Explanation, windowFreeMs = Number.POSITIVE_INFINITY): number {
  const waits = causes.map(({ limit, waitMs }) => {
    if (limit === "queue") return 0;
    if (limit === "window") return Math.min(waitMs, windowFreeMs);
    return SPACED.includes(limit) ? waitMs / (ahead + 1) : waitMs;
  });
  return Math.max(0, ...waits);
}
