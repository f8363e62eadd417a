import { rateOwedAt, rateOwedUnder, rateReadyAt } from "../core/rate.js";
import type { Rule } from "../core/rule.js";
import { windowCountedAt } from "../core/window.js";
import type { CompiledPolicy } from "../policy/types.js";
import { costOf, demandOfKey } from "./demand.js";
import type { Engine } from "./engine.js";
import { type ConvertRow, withHeritage } from "./heritage.js";
import { OVERFLOW_KEY } from "./keys.js";
import type { Waiter } from "./lane.js";
import { type Ledger, ONE } from "./ledger.js";
import type { Profile } from "./profile.js";
import { Renames } from "./renames.js";
import { OWED, SEEN_US } from "./slab.js";
import { NO_LOG } from "./windowLogs.js";

/** Puts another policy in force: for every key at once, for everybody queued, and without forgiving a debt. */
export function reconfigure(engine: Engine, next: CompiledPolicy, nowUs: number): void {
  const { ledger, keys, queue } = engine;
  // The caller's own code may run here, so nothing has changed yet.
  const renames = new Renames(engine, next);
  const policy = withHeritage(engine, next, convertInto(engine), nowUs);
  const before = ledger.profiles.restart();
  engine.policy = policy;
  engine.refresh();
  engine.counsel?.configured();
  const { slab } = ledger;
  const move = (slot: number, ruleOf: (from: Profile) => Rule): void => {
    const from = before[slab.profileNumber(slot)];
    const rule = ruleOf(from);
    keys.setRule(slot, rule);
    convertRow(ledger, slot, from.rule, rule, nowUs);
    engine.adaptive.conform(slot);
    keys.rouseIfOwing(slot, nowUs);
  };
  for (const [name, slot] of keys.hosts) move(slot, () => policy.hostRule(renames.of(name)).rule);
  // A scope that the policy no longer knows keeps its rule until those in flight are back.
  for (const [name, slot] of keys.scopes) move(slot, (from) => scopeRule(policy, renames.ofScope(name)) ?? from.rule);
  followMoved(engine, nowUs);
  renames.apply(nowUs);
  const misfits: { waiter: Waiter; error: unknown }[] = [];
  queue.rebuild((waiter) => {
    const key = renames.of(waiter.target.key);
    if (key !== waiter.target.key) waiter.target = { ...waiter.target, key };
    const demand = demandOfKey(policy, keys, waiter.target, nowUs, true);
    engine.arrivals.redate(waiter, demand);
    try {
      waiter.cost = costOf(ledger, demand, waiter.terms?.cost);
    } catch (error) {
      waiter.cost = ONE;
      misfits.push({ waiter, error });
    }
    return demand;
  }, nowUs);
  for (const { waiter, error } of misfits) {
    engine.departures.refuseWaiter(
      waiter,
      error,
      "POLITELY_POLICY",
      Number.POSITIVE_INFINITY,
      "its cost no longer fits",
    );
  }
  for (const lane of Array.from(queue.lanes.values())) engine.departures.judgeDeadlines(lane.slots[0]);
  queue.run();
}

/** Rows that have become part of others have the rules of these, and go when no permit can lead to them any more. */
function followMoved({ ledger, keys }: Engine, nowUs: number): void {
  for (const [slot, { into, untilUs }] of ledger.loose.moved.all()) {
    if (untilUs <= nowUs) ledger.letGo(slot);
    else keys.setRule(slot, ledger.profileOf(into).rule);
  }
}

/** Makes a row that begins with what another one owes count it by its own rule. */
function convertInto({ ledger, adaptive }: Engine): ConvertRow {
  return (slot, from, nowUs) => {
    convertRow(ledger, slot, from.rule, ledger.profileOf(slot).rule, nowUs);
    adaptive.conform(slot);
  };
}

function scopeRule(policy: CompiledPolicy, name: string): Rule | undefined {
  if (name === OVERFLOW_KEY) return policy.overflow.rule;
  if (name === "global") return policy.global;
  const [kind, first, second] = name.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}

function convertRow(ledger: Ledger, slot: number, from: Rule, to: Rule, nowUs: number): void {
  // Limits that the rule before had dropped, and the one before that had not, are still in the row.
  const former = ledger.former.get(slot)?.rule;
  const bucketFrom = from.rateCount === 0 && former !== undefined ? former : from;
  const windowsFrom = from.windows.length === 0 && former !== undefined ? former : from;
  const quotaFrom = from.quota === undefined && former !== undefined ? former : from;
  const untilUs = Math.max(
    to.rateCount === 0 ? bucketFreeAt(ledger, slot, bucketFrom) : nowUs,
    to.windows.length === 0 ? nowUs + windowsFrom.windows.reduce((most, { perUs }) => Math.max(most, perUs), 0) : nowUs,
    to.quota === undefined && quotaFrom.quota !== undefined
      ? ledger.quotas.readyAt(slot, quotaFrom.quota, quotaFrom.quota.count, nowUs)
      : nowUs,
  );
  // Starts made without a bucket or a window must not take others out of it when they are returned.
  const isPartNew =
    (from.rateCount === 0 && to.rateCount !== 0) || (from.windows.length === 0 && to.windows.length > 0);
  if (isPartNew) ledger.cutTies(slot, nowUs);
  if (to.rateCount !== 0) convertBucket(ledger, slot, bucketFrom, to, nowUs);
  if (to.windows.length > 0)
    convertWindows(ledger, slot, windowsFrom, to, { nowUs, isBack: from.windows.length === 0 });
  convertQuota(ledger, slot, quotaFrom, to);
  const { rateCount, ratePerUs, burst } = to.rateCount === 0 ? bucketFrom : to;
  const { windows } = to.windows.length === 0 ? windowsFrom : to;
  const rule = { ...to, rateCount, ratePerUs, burst, windows, quota: to.quota ?? quotaFrom.quota };
  if (untilUs > nowUs) ledger.former.set(slot, { rule, untilUs });
  else ledger.former.delete(slot);
}

function bucketFreeAt(ledger: Ledger, slot: number, rule: Rule): number {
  const { words } = ledger.slab.chunkOf(slot);
  const word = ledger.slab.wordOf(slot);
  return rule.rateCount === 0 ? 0 : rateReadyAt(rule.rateCount, words[word + OWED], words[word + SEEN_US], 0);
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

/** `isBack`: the windows of `from` are of the past, and there were none at the last starts. */
function convertWindows(
  ledger: Ledger,
  slot: number,
  from: Rule,
  to: Rule,
  { nowUs, isBack }: { readonly nowUs: number; readonly isBack: boolean },
): void {
  const old = from.windows.map(({ perUs }, index) => ({ perUs, handle: ledger.log(slot, index) }));
  const longest = old.reduce<(typeof old)[number] | undefined>(
    (best, log) => (best === undefined || log.perUs > best.perUs ? log : best),
    undefined,
  );
  const holds = ledger.holds.get(slot);
  const lastUs = ledger.lastUs(slot);
  // One in flight that waits for its answer to be logged is known by its hold.
  const isPending = holds?.last?.startedUs === lastUs && !holds.last.isLogged;
  const logs = to.windows.map((window) => {
    const source = old.find(({ perUs }) => perUs === window.perUs) ?? longest;
    const log = source === undefined ? NO_LOG : ledger.logs.copy(source.handle, window);
    if (!isBack || isPending || lastUs + window.perUs <= nowUs) return log;
    // The window was not there at the last start, which counts all the same.
    const isKnown = ledger.logs.newestUs(log) >= windowCountedAt(window, lastUs);
    return isKnown ? log : ledger.logs.append(log, window, lastUs, 1);
  });
  for (const { handle } of old) ledger.logs.release(handle);
  for (let index = 0; index < ledger.slab.layout.windowCount; index++)
    ledger.setLog(slot, index, logs[index] ?? NO_LOG);
  if (to.fromAnswer || holds === undefined) return;
  // Those in flight that would have been logged at their answers count from their starts now.
  for (let hold = holds.first; hold !== undefined; hold = hold.next) {
    if (hold.isLogged) continue;
    ledger.logStart(slot, hold.startedUs, hold.units);
    hold.isLogged = true;
  }
  holds.pendingUnits = 0;
}

function convertQuota(ledger: Ledger, slot: number, from: Rule, to: Rule): void {
  if (to.quota === undefined) return;
  if (from.quota !== undefined && from.quota.per === to.quota.per && from.quota.timeZone === to.quota.timeZone) return;
  // Another calendar: what was spent in the period that ends now is carried into the one that begins.
  const used = from.quota === undefined ? 0 : ledger.quotas.used(slot, from.quota);
  ledger.quotas.restart(slot, to.quota, used);
}
