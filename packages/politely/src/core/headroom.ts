import type { Heard } from "./answer.js";
import type { Slowdown } from "./key.js";

/** What a site says is left of its budget. */
export interface BudgetSaid {
  /** Requests that it still takes before the reset. */
  readonly remaining: number;
  /** Time until the budget is full again. */
  readonly resetUs: number;
  /** Who said so, for people. */
  readonly because: string;
}

/** What is left of a site's budget, as a bound on starts. `startedUs` is the start of the latest request whose answer counts here. */
export interface Headroom extends Slowdown {
  readonly startedUs: number;
}

/**
 * The headroom after an answer that says what remains, with `laterUnits` started after its request that the site may not have counted yet: it is spread until the reset, and none is left when others under way may use it up.
 *
 * Of two answers the one whose request started later counts. One that comes late can only make it tighter, by what it says itself, since the newer
 * answer has counted those under way. When it changes nothing, `known` itself is returned.
 */
export function headroomAfter(
  known: Headroom | undefined,
  { remaining, resetUs, because }: BudgetSaid,
  { startedUs, nowUs }: Pick<Heard, "startedUs" | "nowUs">,
  laterUnits: number,
): Headroom {
  const isLate = known !== undefined && known.untilUs > nowUs && startedUs < known.startedUs;
  const left = remaining - (isLate ? 0 : laterUnits);
  const untilUs = nowUs + resetUs;
  const gapUs = left > 0 ? Math.ceil(resetUs / left) : 0;
  const holdUntilUs = left > 0 ? Number.NEGATIVE_INFINITY : untilUs;
  if (!isLate) return { gapUs, holdUntilUs, untilUs, startedUs, because };
  if (gapUs <= known.gapUs && holdUntilUs <= known.holdUntilUs) return known;
  return {
    gapUs: Math.max(gapUs, known.gapUs),
    holdUntilUs: Math.max(holdUntilUs, known.holdUntilUs),
    untilUs: Math.max(untilUs, known.untilUs),
    startedUs: known.startedUs,
    because,
  };
}
