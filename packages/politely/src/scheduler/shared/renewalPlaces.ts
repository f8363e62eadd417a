import { RUNS_US } from "../../shared/line.js";
import type {
  AnswerNote,
  Sender,
  SettleKey,
  SettleOperation,
  TakeOperation,
  TakeReply,
} from "../../shared/operation.js";
import { placeName } from "../../shared/take.js";
import { NOTHING } from "../cost.js";
import type { PlanKey } from "./plan.js";

/** How long a place is asked for. */
export interface PlaceTerms {
  readonly count: number;
  /** Its name in the line of those who wait. */
  readonly ticket: string;
  readonly leaseUs: number;
  readonly maxHoldUs: number;
}

/**
 * Asks for places at one key and for nothing else: no units, not even a gap once `withoutStarts` is told. Only for what could start now.
 *
 * Whoever has run for so long goes before all who wait.
 */
export function placesOnly(
  { shared, ruleId }: PlanKey,
  { count, ticket, leaseUs, maxHoldUs }: PlaceTerms,
  by: Sender,
): TakeOperation {
  const key = { rule: shared, ruleId, cost: NOTHING, slowUs: 0, period: undefined };
  const first = { turnUs: 1, joinedUs: RUNS_US };
  const terms = { count, horizonUs: 0, ticket, hasMore: false, leaseUs, maxHoldUs, member: "" };
  return { kind: "take", ...by, keys: [key], ...terms, ...first };
}

/** Says that the starts of a `placesOnly` were none: they count no more, and their places stay. */
export function withoutStarts(key: PlanKey, taker: Sender, { starts, nowUs }: TakeReply, by: Sender): SettleOperation {
  const [first, last] = [starts[0], starts[starts.length - 1]];
  const note = settleKey(key, "unused");
  return {
    kind: "settle",
    ...by,
    startedUs: last.startedUs,
    grantedUs: nowUs,
    place: placeName(taker, 0),
    isOver: false,
    isUnused: true,
    unusedAt: [last.startedUs, starts.length],
    keys: [{ ...note, unitsAfter: last.unitsAfter[0], previousUs: first.previousUs[0] }],
  };
}

/** Gives a place back that was taken by a `placesOnly`. */
export function withoutPlace(key: PlanKey, place: string, by: Sender): SettleOperation {
  const keys = [settleKey(key, "neutral")];
  return { kind: "settle", ...by, startedUs: 0, grantedUs: 0, place, isOver: true, isUnused: false, keys };
}

function settleKey({ rule, ruleId }: PlanKey, kind: AnswerNote["kind"]): SettleKey {
  return {
    ruleId,
    unitsAfter: Number.MAX_SAFE_INTEGER,
    previousUs: -1,
    back: NOTHING,
    windowUnits: 0,
    answer: { kind, retryAfterUs: 0, random: 0, because: "", remaining: -1, resetUs: 0 },
    cooldownUs: rule.cooldownUs,
    backoff: rule.backoff,
    isHeld: rule.enabled,
  };
}
