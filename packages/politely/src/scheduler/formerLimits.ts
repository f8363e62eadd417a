import type { Rule } from "../core/rule.js";
import type { Ledger } from "./ledger.js";

/** Limits that a change of policy has taken away, as far as the rule that is left has none of the kind, and when nothing is owed to them any more. */
export interface FormerLimits {
  readonly rule: Rule;
  readonly untilUs: number;
}

/** Counts units of an answer in the windows of the key, or in those that it had when the request started and may have again. */
export function logAnswer(ledger: Ledger, slot: number, atUs: number, units: number): void {
  const former = ledger.profileOf(slot).rule.windows.length === 0 ? ledger.former.get(slot) : undefined;
  if (former === undefined) {
    ledger.logStart(slot, atUs, units);
    return;
  }
  const { windows } = former.rule;
  ledger.logStart(slot, atUs, units, windows);
  const longestUs = windows.reduce((most, { perUs }) => Math.max(most, perUs), 0);
  ledger.former.set(slot, { ...former, untilUs: Math.max(former.untilUs, atUs + longestUs) });
}
