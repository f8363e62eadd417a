import type { LimitKind } from "../observe/types.js";
import type { Cost } from "./cost.js";
import type { Ledger } from "./ledger.js";

/** One limit of one key that does not allow a start now. */
export interface SlotCause {
  readonly limit: LimitKind;
  /** The earliest instant at which this limit could allow it. Where an answer is waited for it may be now. */
  readonly atUs: number;
  /** Which of the rule's windows, when it is one. */
  readonly windowIndex: number;
}

/** Those who go first: how many, and what they cost together. */
export interface Ahead {
  readonly requests: number;
  readonly units: Cost;
}

/** Nobody. */
export const NOBODY: Ahead = { requests: 0, units: { rate: 0, window: 0, quota: 0 } };

/**
 * Every limit of one key that stands in the way of a start, with the earliest it could be out of it.
 *
 * The instants are exact when nobody is ahead and no answer is waited for; otherwise they are lower bounds.
 */
export function slotCauses(ledger: Ledger, slot: number, cost: Cost, ahead: Ahead, nowUs: number): SlotCause[] {
  const { rule, isFollowed, isOff } = ledger.profileOf(slot);
  const causes: SlotCause[] = [];
  const add = (limit: LimitKind, atUs: number, isAwaiting = false, windowIndex = 0): void => {
    if (atUs > nowUs || isAwaiting) causes.push({ limit, atUs: Math.max(atUs, nowUs), windowIndex });
  };
  add("pause", ledger.pauses.get(slot) ?? nowUs);
  if (isOff) return causes;
  if (isFollowed) ledger.lapse(slot, nowUs);
  const cooldown = ledger.cooldowns.get(slot);
  if (cooldown !== undefined) {
    add("cooldown", cooldown.untilUs);
    add("probe", nowUs, cooldown.untilUs <= nowUs && ledger.cooldownAt(slot) > nowUs);
  }
  const isAnswerDue = rule.fromAnswer && ledger.holds.get(slot)?.first !== undefined;
  const spacedFromUs = isAnswerDue ? nowUs : ledger.spacedFromUs(slot);
  for (const { source, atUs } of ledger.slowdowns.causes(slot, spacedFromUs, nowUs)) add(source, atUs);
  if (rule.gapUs !== 0) {
    const firstUs = isAnswerDue ? nowUs + rule.gapUs : ledger.gapAt(slot);
    add(
      "minDelay",
      Math.max(firstUs, ahead.requests === 0 ? firstUs : nowUs) + ahead.requests * rule.gapUs,
      isAnswerDue,
    );
  }
  if (rule.rateCount !== 0) {
    const rateCost = cost.rate + ahead.units.rate;
    const owedUs = ledger.rateAt(slot, { ...cost, rate: rateCost });
    // A full bucket cannot save up for those ahead: their units come out of what it holds now.
    const fullUs = nowUs + Math.ceil(((rateCost - rule.burst) * rule.ratePerUs) / rule.rateCount);
    add("rate", Math.max(owedUs, fullUs));
  }
  rule.windows.forEach((window, index) => {
    const units = cost.window + ahead.units.window - 1;
    const rest = { ...cost, window: (units % window.count) + 1 };
    const atUs = ledger.windowAt(slot, index, rest, nowUs);
    const isAwaiting = isAnswerDue && atUs > nowUs;
    const firstUs = isAwaiting ? Math.min(atUs, nowUs + window.perUs) : atUs;
    add("window", Math.max(firstUs, nowUs) + Math.floor(units / window.count) * window.perUs, isAwaiting, index);
  });
  if (rule.quota !== undefined) {
    add("quota", ledger.quotas.readyAt(slot, rule.quota, cost.quota + ahead.units.quota, nowUs));
  }
  if (isFollowed) add("concurrency", nowUs, ledger.concurrencyAt(slot, nowUs) > nowUs);
  return causes;
}
