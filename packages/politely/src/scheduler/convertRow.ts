import type { Rule, WindowRule } from "../core/rule.js";
import { rateOwedAt, rateOwedUnder } from "../shared/rate.js";
import { windowCountedAt } from "../shared/window.js";
import type { Holds } from "./flight.js";
import { unitedWindow } from "./formerLimits.js";
import type { Ledger } from "./ledger.js";
import { bucketPaidAt, quotaPaidAt } from "./owing.js";
import { ROW } from "./slab.js";
import { NO_LOG } from "./windowLogs.js";

const { OWED, SEEN_US } = ROW;

/** A window of before with its log. */
interface OldLog {
  readonly window: WindowRule;
  readonly handle: number;
}

/** A window that is no longer there, and when nothing is owed to it any more. */
interface GoneWindow {
  readonly window: WindowRule;
  readonly untilUs: number;
}

/** Makes a row whose numbers are of the rule `from` count by the rule it has now. Nothing is forgiven: what that lacks is remembered until nothing is owed to it. */
export function convertRow(ledger: Ledger, slot: number, from: Rule, nowUs: number): void {
  const to = ledger.profileOf(slot).rule;
  // Limits that the rule before had dropped, and the one before that had not, are still in the row.
  const former = ledger.former.get(slot);
  const bucketFrom = from.rateCount === 0 && former !== undefined ? former.rule : from;
  const quotaFrom = from.quota === undefined && former !== undefined ? former.rule : from;
  const old = (former?.windows ?? from.windows).map((window, index) => ({ window, handle: ledger.log(slot, index) }));
  const gone = goneWindows(ledger, slot, old, nowUs, (index) => index < from.windows.length);
  const kept = gone.length === 0 ? undefined : unitedWindow([...gone.map(({ window }) => window), ...to.windows]);
  const untilUs = Math.max(
    to.rateCount === 0 && bucketFrom.rateCount !== 0 ? bucketPaidAt(ledger, slot, bucketFrom) : nowUs,
    to.quota === undefined && quotaFrom.quota !== undefined ? quotaPaidAt(ledger, slot, quotaFrom.quota, nowUs) : nowUs,
    ...gone.map((each) => each.untilUs),
  );
  // Starts made without a bucket or a window must not take others out of it when they are returned.
  const isPartNew =
    (from.rateCount === 0 && to.rateCount !== 0) || (from.windows.length === 0 && to.windows.length > 0);
  if (isPartNew) ledger.ties.cut(slot, nowUs);
  if (to.rateCount !== 0) convertBucket(ledger, slot, bucketFrom, to, nowUs);
  const windows = kept === undefined ? to.windows : [...to.windows, kept];
  convertWindows(ledger, slot, old, windows, { nowUs, isBack: from.windows.length === 0 });
  if (!to.fromAnswer && to.windows.length > 0) logPending(ledger, slot, windows);
  convertQuota(ledger, slot, quotaFrom, to);
  const { rateCount, ratePerUs, burst } = to.rateCount === 0 ? bucketFrom : to;
  const rule = { ...to, rateCount, ratePerUs, burst, quota: to.quota ?? quotaFrom.quota };
  if (untilUs > nowUs) ledger.former.set(slot, { rule, windows, untilUs });
  else ledger.former.delete(slot);
}

/**
 * The windows of before that look back further, or more closely, than any of the new ones, as far as something is owed to them. Those that were
 * not in force any more (`wasInForce`) stay no longer for another change, unless an answer is still to come.
 */
function goneWindows(
  ledger: Ledger,
  slot: number,
  old: readonly OldLog[],
  nowUs: number,
  wasInForce: (index: number) => boolean,
): GoneWindow[] {
  const { windows } = ledger.profileOf(slot).rule;
  const pending = ledger.holds.get(slot)?.pendingUnits ?? 0;
  return old.flatMap(({ window, handle }, index) => {
    const isNew = wasInForce(index) || pending > 0;
    const untilUs = isNew ? nowUs + window.perUs : (ledger.former.get(slot)?.untilUs ?? nowUs);
    const isThere = windows.some(({ count, perUs }) => count >= window.count && perUs >= window.perUs);
    if (isThere || untilUs <= nowUs) return [];
    return ledger.logs.used(handle, window, nowUs) + pending > 0 ? [{ window, untilUs }] : [];
  });
}

function convertBucket(ledger: Ledger, slot: number, from: Rule, to: Rule, nowUs: number): void {
  const { words } = ledger.slab.chunkOf(slot);
  const word = ledger.slab.wordOf(slot);
  const lastUs = ledger.lastUs(slot);
  const seenUs = words[word + SEEN_US];
  const owedAt = (atUs: number): number =>
    from.rateCount === 0 ? 0 : rateOwedUnder(rateOwedAt(from.rateCount, words[word + OWED], seenUs, atUs), from, to);
  let owed = owedAt(nowUs);
  if (from.rateCount === 0 || lastUs > seenUs) {
    // The bucket was not there at the last start, which counts all the same.
    const owedThen = Math.min(Number.MAX_SAFE_INTEGER, owedAt(lastUs) + to.ratePerUs);
    owed = Math.max(owed, rateOwedAt(to.rateCount, owedThen, lastUs, nowUs));
  }
  words[word + OWED] = owed;
  words[word + SEEN_US] = nowUs;
}

/** Gives every window a log of the starts that are known. `isBack`: there was no window at the last starts. */
function convertWindows(
  ledger: Ledger,
  slot: number,
  old: readonly OldLog[],
  windows: readonly WindowRule[],
  { nowUs, isBack }: { readonly nowUs: number; readonly isBack: boolean },
): void {
  const holds = ledger.holds.get(slot);
  const lastUs = ledger.lastUs(slot);
  // One in flight that waits for its answer to be logged is known by its hold.
  const isPending = holds?.last?.startedUs === lastUs && !holds.last.isLogged;
  // A key that owed nothing may have let its logs go.
  const isLastUnknown = !isPending && (isBack || old.every(({ handle }) => handle === NO_LOG));
  const stay = new Set<OldLog>();
  const logs = windows.map((window) => {
    const same = old.find((each) => isSame(each.window, window) && !stay.has(each));
    if (same !== undefined) stay.add(same);
    const source = bestLog(ledger, old, window);
    const log =
      same?.handle ?? (source === undefined ? NO_LOG : ledger.logs.copy(source.handle, source.window, window));
    if (!isLastUnknown || (same !== undefined && !isBack) || lastUs + window.perUs <= nowUs) return log;
    const isKnown = ledger.logs.newestUs(log) >= windowCountedAt(window, lastUs);
    return isKnown ? log : ledger.logs.append(log, window, lastUs, 1);
  });
  for (const each of old) if (!stay.has(each)) ledger.logs.release(each.handle);
  ledger.makeRoomFor(ledger.profileOf(slot).rule, windows.length);
  for (let index = 0; index < ledger.slab.layout.windowCount; index++)
    ledger.setLog(slot, index, logs[index] ?? NO_LOG);
}

/** The log to make that of `window` from: one that looks back as far, as finely as there is, and of those the one that knows most. */
function bestLog(ledger: Ledger, old: readonly OldLog[], window: WindowRule): OldLog | undefined {
  const far = old.filter(({ window: { perUs } }) => perUs >= window.perUs);
  const finestUs = far.reduce((least, { window: { grainUs } }) => Math.min(least, grainUs), Number.POSITIVE_INFINITY);
  const fit = far.length === 0 ? old : far.filter(({ window: { grainUs } }) => grainUs === finestUs);
  const since = fit.map((log) => ({ log, sinceUs: ledger.logs.knownSinceUs(log.handle) }));
  since.sort((a, b) => (a.sinceUs < b.sinceUs ? -1 : 1));
  return since[0]?.log;
}

function isSame(a: WindowRule, b: WindowRule): boolean {
  return a.count === b.count && a.perUs === b.perUs && a.grainUs === b.grainUs;
}

const EVERYTHING: WindowRule = { count: Number.MAX_SAFE_INTEGER / 4, perUs: Number.MAX_SAFE_INTEGER, grainUs: 1 };

/** Those in flight that would have been logged at their answers count from their starts now. */
function logPending(ledger: Ledger, slot: number, windows: readonly WindowRule[]): void {
  const holds: Holds | undefined = ledger.holds.get(slot);
  if (holds === undefined || holds.pendingUnits === 0) return;
  let starts = NO_LOG;
  for (let hold = holds.first; hold !== undefined; hold = hold.next) {
    if (hold.isLogged) continue;
    starts = ledger.logs.append(starts, EVERYTHING, hold.startedUs, hold.units);
    hold.isLogged = true;
  }
  holds.pendingUnits = 0;
  windows.forEach((window, index) => {
    ledger.setLog(slot, index, ledger.logs.join(ledger.log(slot, index), starts, window));
  });
  ledger.logs.release(starts);
}

function convertQuota(ledger: Ledger, slot: number, from: Rule, to: Rule): void {
  if (to.quota === undefined) return;
  if (from.quota !== undefined && from.quota.per === to.quota.per && from.quota.timeZone === to.quota.timeZone) return;
  // Another calendar: what was spent in the period that ends now is carried into the one that begins.
  const used = from.quota === undefined ? 0 : ledger.quotas.used(slot, from.quota);
  ledger.quotas.restart(slot, to.quota, used);
}
