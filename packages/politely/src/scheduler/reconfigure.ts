import { rateOwedAt, rateOwedUnder, rateReadyAt } from "../core/rate.js";
import type { Rule } from "../core/rule.js";
import type { CompiledPolicy } from "../policy/types.js";
import { costOf, demandOfKey } from "./demand.js";
import type { Engine } from "./engine.js";
import { OVERFLOW_KEY } from "./keys.js";
import type { Waiter } from "./lane.js";
import { type Ledger, ONE } from "./ledger.js";
import type { Profile } from "./profile.js";
import { OWED, SEEN_US } from "./slab.js";
import { NO_LOG } from "./windowLogs.js";

/** Puts another policy in force: for every key at once, for everybody queued, and without forgiving a debt. */
export function reconfigure(engine: Engine, policy: CompiledPolicy, nowUs: number): void {
  const { ledger, keys, queue } = engine;
  const before = ledger.profiles.restart();
  engine.policy = policy;
  engine.refresh();
  engine.counsel?.configured();
  renameHosts(engine, policy);
  const { slab } = ledger;
  const move = (slot: number, ruleOf: (from: Profile) => Rule): void => {
    const from = before[slab.profileNumber(slot)];
    const rule = ruleOf(from);
    keys.setRule(slot, rule);
    convertRow(ledger, slot, from.rule, rule, nowUs);
    engine.adaptive.conform(slot);
    keys.rouseIfOwing(slot, nowUs);
  };
  for (const [key, slot] of keys.hosts) move(slot, () => policy.hostRule(key.split("\n", 1)[0]).rule);
  // A scope that the policy no longer knows keeps its rule until those in flight are back.
  for (const [name, slot] of keys.scopes) move(slot, (from) => scopeRule(policy, name) ?? from.rule);
  const misfits: { waiter: Waiter; error: unknown }[] = [];
  queue.rebuild((waiter) => {
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

/** Rows of names that the new policy reads as another key, a port that no rule names any more say, go to that key, or out of reach. */
function renameHosts(engine: Engine, policy: CompiledPolicy): void {
  if (!policy.hostIsKey) return;
  const { hosts } = engine.keys;
  for (const [name, slot] of Array.from(hosts)) {
    const key = name.includes("\n") ? name : policy.resolve(name).key;
    if (key === name) continue;
    hosts.delete(name);
    hosts.set(hosts.has(key) ? `${name}\n` : key, slot);
  }
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
  if (to.rateCount !== 0) convertBucket(ledger, slot, bucketFrom, to, nowUs);
  if (to.windows.length > 0) convertWindows(ledger, slot, windowsFrom, to, nowUs);
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
  let owed = 0;
  if (from.rateCount !== 0) {
    owed = rateOwedUnder(rateOwedAt(from.rateCount, words[word + OWED], words[word + SEEN_US], nowUs), from, to);
  } else if (lastUs !== Number.NEGATIVE_INFINITY) {
    // The bucket is new, the last start is not: it counts.
    owed = rateOwedAt(to.rateCount, to.ratePerUs, lastUs, nowUs);
  }
  words[word + OWED] = owed;
  words[word + SEEN_US] = nowUs;
}

function convertWindows(ledger: Ledger, slot: number, from: Rule, to: Rule, nowUs: number): void {
  const old = from.windows.map(({ perUs }, index) => ({ perUs, handle: ledger.log(slot, index) }));
  const longest = old.reduce<(typeof old)[number] | undefined>(
    (best, log) => (best === undefined || log.perUs > best.perUs ? log : best),
    undefined,
  );
  const lastUs = ledger.lastUs(slot);
  const logs = to.windows.map((window) => {
    const source = old.find(({ perUs }) => perUs === window.perUs) ?? longest;
    if (source !== undefined) return ledger.logs.copy(source.handle, window);
    ledger.cutTies(slot);
    return lastUs + window.perUs > nowUs ? ledger.logs.append(NO_LOG, window, lastUs, 1) : NO_LOG;
  });
  for (const { handle } of old) ledger.logs.release(handle);
  for (let index = 0; index < ledger.slab.layout.windowCount; index++)
    ledger.setLog(slot, index, logs[index] ?? NO_LOG);
  const holds = ledger.holds.get(slot);
  if (!from.fromAnswer || to.fromAnswer || holds === undefined) return;
  // Those in flight would have been logged at their answers; now they count from their starts.
  for (let hold = holds.first; hold !== undefined; hold = hold.next) {
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
