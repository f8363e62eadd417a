import type { Calendar } from "../../core/calendar.js";
import { WallCalendar } from "../../core/calendar.js";
import type { CalendarPeriod, Sender, TakeKey, TakeOperation } from "../../shared/operation.js";
import { costAt, type LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";

/** What the keys of a request need from the process that asks. */
export interface AskContext {
  /** Store time as milliseconds since 1970, and as its own instant. */
  readonly wallMs: number;
  readonly storeUs: number;
  readonly timeline: "epoch" | "machine";
  /** What robots.txt or `adaptive` ask of each key, as a gap; 0 for nothing. */
  readonly slowUs: readonly number[];
}

/** Puts the keys of a request in the form that stores take. */
export class AskedKeys {
  #calendar = new WallCalendar(Date.now);

  /** Forgets which period it is: the store says that it is another one. */
  forgetPeriods(): void {
    this.#calendar = new WallCalendar(Date.now);
  }

  of(plan: Plan, cost: LaneCost, context: AskContext): TakeKey[] {
    return plan.keys.map(({ rule, shared, ruleId }, index) => ({
      rule: shared,
      ruleId,
      cost: costAt(cost, index),
      slowUs: context.slowUs[index] ?? 0,
      period: rule.quota === undefined ? undefined : this.#period(rule.quota, context),
    }));
  }

  #period(calendar: Calendar, { wallMs, storeUs, timeline }: AskContext): CalendarPeriod {
    const { startsAtMs: index, endsAtMs } = this.#calendar.periodAt(calendar, wallMs);
    if (timeline === "epoch") return { index, fromUs: index * 1000, untilUs: endsAtMs * 1000 };
    // The store has no calendar of its own: the processes' wall clocks say which period it is, and it only grows.
    return { index, fromUs: 0, untilUs: storeUs + Math.max(1, Math.ceil((endsAtMs - wallMs) * 1000)) };
  }
}

/** What one `take` asks for beside its keys. */
export type TakeTerms = Omit<TakeOperation, "kind" | "keys" | "leaseUs" | "maxHoldUs" | keyof Sender>;

/** Makes the operation. */
export function takeOperation(plan: Plan, keys: readonly TakeKey[], terms: TakeTerms, sender: Sender): TakeOperation {
  return { kind: "take", ...sender, keys, ...terms, leaseUs: plan.leaseUs, maxHoldUs: plan.maxHoldUs };
}
