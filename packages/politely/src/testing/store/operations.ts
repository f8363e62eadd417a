import type {
  AnswerNote,
  SettleKey,
  SettleOperation,
  SharedRule,
  Start,
  TakeKey,
  TakeOperation,
  TakeReply,
  Units,
} from "../../shared/operation.js";
import { ruleIdOf } from "../../shared/ruleNumbers.js";
import { placeName } from "../../shared/take.js";

/** Who sends an operation. */
export interface From {
  readonly asker: string;
  readonly sequence: number;
}

/** A start, with what is needed to give it back. */
export interface TakenStart {
  readonly operation: TakeOperation;
  readonly start: Start;
  readonly place: string;
  /** Store time of the take. */
  readonly grantedUs: number;
}

/** How a start is given back. What is left out: it is over, was sent, and nothing was learned. */
export interface SettleTerms {
  readonly answer?: Partial<AnswerNote>;
  readonly isOver?: boolean;
  /** True for an answer of kind `"unused"`. */
  readonly isUnused?: boolean;
  /** What was really spent, in each kind of limit. */
  readonly spent?: number;
  readonly cooldownUs?: readonly number[];
  readonly backoff?: SettleKey["backoff"];
}

/** A key under these limits, and no others. A cost of 1 where none is given. */
export function keyOf(
  limits: Partial<SharedRule>,
  { cost = 1, ...more }: Partial<Omit<TakeKey, "cost">> & { readonly cost?: number } = {},
): TakeKey {
  const rule: SharedRule = {
    gapUs: 0,
    rateCount: 0,
    ratePerUs: 0,
    burst: 1,
    windows: [],
    quota: 0,
    calendar: "",
    concurrency: 0,
    fromAnswer: false,
    ...limits,
  };
  return { rule, ruleId: ruleIdOf(rule), cost: unitsOf(cost), slowUs: 0, period: undefined, ...more };
}

/** The same number of units of each kind. */
export function unitsOf(units: number): Units {
  return { rate: units, window: units, quota: units };
}

/** A `take` of one start, now or never, unless the terms say otherwise. */
export function takeOf(from: From, keys: readonly TakeKey[], terms: Partial<TakeOperation> = {}): TakeOperation {
  return {
    kind: "take",
    ...from,
    keys,
    count: 1,
    horizonUs: 0,
    ticket: "",
    turnUs: 0,
    joinedUs: 0,
    hasMore: false,
    leaseUs: 30_000_000,
    maxHoldUs: 600_000_000,
    member: "",
    ...terms,
  };
}

/** The starts of a reply, ready to be given back. */
export function startsOf(operation: TakeOperation, { starts, nowUs }: TakeReply): TakenStart[] {
  return starts.map((start, index) => ({ operation, start, place: placeName(operation, index), grantedUs: nowUs }));
}

/** A `settle` of one start. */
export function settleOf(
  from: From,
  { operation, start, place, grantedUs }: TakenStart,
  terms: SettleTerms = {},
): SettleOperation {
  const isUnused = terms.isUnused ?? terms.answer?.kind === "unused";
  const answer: AnswerNote = {
    kind: isUnused ? "unused" : "neutral",
    retryAfterUs: 0,
    random: 0,
    because: "",
    remaining: -1,
    resetUs: 0,
    ...terms.answer,
  };
  const keys = operation.keys.map(({ ruleId, cost }, index): SettleKey => {
    const spent = isUnused ? 0 : terms.spent;
    const back = spent === undefined ? unitsOf(0) : less(cost, spent);
    return {
      ruleId,
      unitsAfter: start.unitsAfter[index],
      previousUs: start.previousUs[index],
      back,
      windowUnits: cost.window - back.window,
      answer,
      cooldownUs: terms.cooldownUs ?? [60_000_000],
      backoff: terms.backoff ?? { kind: "linear", baseUs: 5_000_000, maxUs: 30_000_000, jitter: 0 },
      isHeld: true,
    };
  });
  const { startedUs } = start;
  return { kind: "settle", ...from, startedUs, grantedUs, place, isOver: terms.isOver ?? true, isUnused, keys };
}

function less({ rate, window, quota }: Units, units: number): Units {
  return { rate: rate - units, window: window - units, quota: quota - units };
}
