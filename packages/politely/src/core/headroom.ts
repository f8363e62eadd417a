/** What a site says is left of its budget. */
export interface BudgetSaid {
  /** Requests that it still takes before the reset. */
  readonly remaining: number;
  /** Time until the budget is full again. */
  readonly resetUs: number;
}

/** The answer that said it. */
export interface BudgetHeard {
  /** When its request started. */
  readonly startedUs: number;
  readonly nowUs: number;
  /** Units started after that request: the site may not have counted them yet. */
  readonly laterUnits: number;
}

/** What is left of a site's budget, as a bound on starts. */
export interface Headroom {
  /** The least time between two starts, so that what remains lasts until the reset. */
  readonly gapUs: number;
  /** No start before this instant. */
  readonly holdUntilUs: number;
  /** Nothing of this holds from here on: the site's budget is full again. */
  readonly untilUs: number;
  /** Start of the latest request whose answer counts here. */
  readonly startedUs: number;
}

/**
 * The headroom after an answer that says what remains: it is spread until the reset, and none is left when others under way may use it up.
 *
 * Of two answers the one whose request started later counts. One that comes late can only make it tighter, never wider, so
 * that answers out of order do no harm: by what it says itself, since the newer answer has counted those under way. When it
 * changes nothing, `known` itself is returned.
 */
export function headroomAfter(known: Headroom | undefined, said: BudgetSaid, heard: BudgetHeard): Headroom {
  const { nowUs, startedUs } = heard;
  const untilUs = nowUs + said.resetUs;
  const isLate = known !== undefined && known.untilUs > nowUs && startedUs < known.startedUs;
  const left = said.remaining - (isLate ? 0 : heard.laterUnits);
  const gapUs = left > 0 ? Math.ceil(said.resetUs / left) : 0;
  const holdUntilUs = left > 0 ? Number.NEGATIVE_INFINITY : untilUs;
  if (!isLate) return { gapUs, holdUntilUs, untilUs, startedUs };
  if (gapUs <= known.gapUs && holdUntilUs <= known.holdUntilUs) return known;
  return {
    gapUs: Math.max(gapUs, known.gapUs),
    holdUntilUs: Math.max(holdUntilUs, known.holdUntilUs),
    untilUs: Math.max(untilUs, known.untilUs),
    startedUs: known.startedUs,
  };
}
