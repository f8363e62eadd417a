import type { Explanation, Limits, Stats } from "politely";
import { durationMs, rateParts } from "../../policy/rateParts.js";

/** What is known beside an explanation. */
export interface HeadFacts {
  /** Limits by scope, `"host"` and `"global"`. */
  readonly limits: Readonly<Record<string, Limits | undefined>>;
  readonly stats: Pick<Stats, "windows"> | undefined;
}

/**
 * How long the first of a lane still waits, at the earliest, from what `explain` says of a newcomer behind everybody: the turns of those ahead are
 * taken off again.
 *
 * Exact for gaps, rates and windows of requests that cost 1. Limits of intents and scopes count as for the newcomer. Infinity while there is no end in sight.
 */
export function headWaitMs({ causes, ahead }: Explanation, { limits, stats }: HeadFacts): number {
  let longestMs = 0;
  for (const { limit, scope, waitMs } of causes) {
    const { minDelay, rate } = limits[scope] ?? {};
    let ownMs = waitMs;
    if (limit === "minDelay" && minDelay !== undefined) ownMs -= ahead * durationMs(minDelay);
    if (limit === "rate" && rate !== undefined) ownMs -= (ahead * rateParts(rate).perMs) / rateParts(rate).count;
    if (limit === "window" && scope === "host" && stats !== undefined) {
      ownMs = Math.min(ownMs, Math.max(0, ...stats.windows.map(({ nextFreeMs }) => nextFreeMs)));
    }
    longestMs = Math.max(longestMs, ownMs);
  }
  return longestMs;
}
