import type { Rule, WindowRule } from "../core/rule.js";
import { windowGrainUs } from "../shared/window.js";
import type { Ledger } from "./ledger.js";
import { NO_LOG } from "./windowLogs.js";

/** Limits that a change of policy has taken away or made shorter, and when nothing is owed to them any more. */
export interface FormerLimits {
  /** Bucket and quota, as far as the rule that is left has none: the row still has their numbers. */
  readonly rule: Rule;
  /** All windows that the row has logs of: those of its rule, then one that looks back as far as those that are gone, if there were any. */
  readonly windows: readonly WindowRule[];
  readonly untilUs: number;
}

/** The windows that a row has logs of. */
export function loggedWindows(ledger: Ledger, slot: number): readonly WindowRule[] {
  return ledger.former.get(slot)?.windows ?? ledger.profileOf(slot).rule.windows;
}

/**
 * The windows that a start at `atUs` is logged in, and taken out of when it is returned. What is over is let go.
 *
 * Without a window in force there is none: of starts made meanwhile the last one counts when a window comes back.
 */
export function countedWindows(ledger: Ledger, slot: number, atUs: number): readonly WindowRule[] {
  const { windows } = ledger.profileOf(slot).rule;
  const former = windows.length === 0 ? undefined : ledger.former.get(slot);
  if (former === undefined) return windows;
  if (former.untilUs > atUs) return former.windows;
  ledger.former.delete(slot);
  for (let index = windows.length; index < former.windows.length; index++) {
    ledger.logs.release(ledger.log(slot, index));
    ledger.setLog(slot, index, NO_LOG);
  }
  return windows;
}

/** One window that looks back as far as all of these, and as closely. Undefined for none. */
export function unitedWindow(windows: readonly WindowRule[]): WindowRule | undefined {
  if (windows.length === 0) return undefined;
  const count = windows.reduce((most, window) => Math.max(most, window.count), 0);
  const perUs = windows.reduce((most, window) => Math.max(most, window.perUs), 0);
  return { count, perUs, grainUs: windowGrainUs(count, perUs) };
}

/** Counts units of an answer in the windows of the key, or in those that it had when the request started and may have again. */
export function logAnswer(ledger: Ledger, slot: number, atUs: number, units: number): void {
  const former = ledger.profileOf(slot).rule.windows.length === 0 ? ledger.former.get(slot) : undefined;
  if (former === undefined) {
    ledger.logStart(slot, atUs, units);
    return;
  }
  const { windows } = former;
  ledger.logStart(slot, atUs, units, windows);
  const longestUs = windows.reduce((most, { perUs }) => Math.max(most, perUs), 0);
  ledger.former.set(slot, { ...former, untilUs: Math.max(former.untilUs, atUs + longestUs) });
}
