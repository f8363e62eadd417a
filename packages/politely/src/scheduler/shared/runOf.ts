import type { LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";
import type { QuestionParts, Taken } from "./questions.js";
import { Run, type RunFacts } from "./run.js";

/** The starts of an answer that took longer than this, and than four usual ones, go back. */
const LATE_US = 1_000_000;

/** The starts of a reply, with the instants of this process at which they may be used: never before the store's. */
export function runOf(
  { engine, link }: Pick<QuestionParts, "engine" | "link">,
  { key, plan, cost }: Pick<RunFacts, "key"> & { readonly plan: Plan; readonly cost: LaneCost },
  { reply, origin, asker, tookUs }: Taken,
): Run {
  const isFollowed = plan.isFollowed || reply.stricterAt >= 0;
  const { isCooling, nowUs: grantedUs } = reply;
  const facts: RunFacts = { plan, key, cost, isFollowed, isCooling, origin, grantedUs, asker };
  const isLost = isFollowed && tookUs * 2 > plan.leaseUs;
  const isLate = isLost || tookUs > Math.max(LATE_US, 4 * link.roundTripUs);
  return new Run(facts, reply.starts, engine.nowUs() - grantedUs, isLate);
}
