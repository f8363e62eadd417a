import type { SharedKeyLimiter } from "./sharedTypes.js";
import type { KeyLimiter } from "./types.js";

/** The verbs that a limiter of one key has in common with one of many, but for the target. `statsNow` is its `stats`. */
const VERBS = [
  ...(["acquire", "tryAcquire", "check", "record", "run", "wrap", "explain", "elapsedMs", "isEnabled"] as const),
  ...(["pause", "resume", "cancelWaiting", "idle", "reset", "statsNow"] as const),
];

type Verb = (...given: never[]) => unknown;

/** The verbs of a limiter with one key: those of `limiter`, always about `key`. Where its limits are kept makes no difference. */
export function keyLimiterOf<Made extends KeyLimiter | SharedKeyLimiter>(
  limiter: Record<(typeof VERBS)[number], Verb> & Pick<Made, "fetch" | "subscribe" | "close">,
  key: string,
  configure: Made["configure"],
): Made {
  const bound = VERBS.map((verb) => [verb, (limiter[verb] as (...given: unknown[]) => unknown).bind(limiter, key)]);
  const { statsNow: stats, ...verbs } = Object.fromEntries(bound) as Record<string, Verb>;
  const { fetch } = limiter;
  const [subscribe, close] = [limiter.subscribe.bind(limiter), limiter.close.bind(limiter)];
  return { ...verbs, stats, fetch, configure, subscribe, close } as unknown as Made;
}
