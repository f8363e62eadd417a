import { rateOwedAt, rateOwedUnder } from "../core/rate.js";
import type { Rule } from "../core/rule.js";
import type { CompiledPolicy } from "../policy/types.js";
import { costOf, demandOfKey } from "./demand.js";
import type { Engine } from "./engine.js";
import { OVERFLOW_KEY } from "./keys.js";
import type { Waiter } from "./lane.js";
import type { Ledger } from "./ledger.js";
import type { Profile } from "./profile.js";
import { OWED, SEEN_US } from "./slab.js";
import { NO_LOG } from "./windowLogs.js";

/** Puts another policy in force: for every key at once, for everybody queued, and without forgiving a debt. */
export function reconfigure(engine: Engine, policy: CompiledPolicy, nowUs: number): void {
  const { ledger, keys, queue } = engine;
  const before = ledger.profiles.restart();
  engine.policy = policy;
  const { slab } = ledger;
  const move = (slot: number, ruleOf: (from: Profile) => Rule): void => {
    const from = before[slab.profileNumber(slot)];
    const rule = ruleOf(from);
    keys.setRule(slot, rule);
    convertRow(ledger, slot, from.rule, rule, nowUs);
  };
  for (const [key, slot] of keys.hosts) move(slot, () => policy.hostRule(key).rule);
  // A scope that the policy no longer knows keeps its rule until those in flight are back.
  for (const [name, slot] of keys.scopes) move(slot, (from) => scopeRule(policy, name) ?? from.rule);
  const misfits: { waiter: Waiter; error: unknown }[] = [];
  queue.rebuild((waiter) => {
    const demand = demandOfKey(policy, keys, waiter.target, nowUs, true);
    try {
      waiter.cost = costOf(ledger, demand, waiter.terms?.cost);
    } catch (error) {
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
  engine.refresh();
  for (const lane of queue.lanes.values()) engine.departures.judgeDeadlines(lane.slots[0]);
  queue.run();
}

function scopeRule(policy: CompiledPolicy, name: string): Rule | undefined {
  if (name === OVERFLOW_KEY) return policy.overflow.rule;
  if (name === "global") return policy.global;
  const [kind, first, second] = name.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}

function convertRow(ledger: Ledger, slot: number, from: Rule, to: Rule, nowUs: number): void {
  convertBucket(ledger, slot, from, to, nowUs);
  convertWindows(ledger, slot, from, to, nowUs);
  convertQuota(ledger, slot, from, to);
}

function convertBucket(ledger: Ledger, slot: number, from: Rule, to: Rule, nowUs: number): void {
  const { words } = ledger.slab.chunkOf(slot);
  const word = ledger.slab.wordOf(slot);
  const lastUs = ledger.lastUs(slot);
  let owed = 0;
  if (to.rateCount !== 0 && from.rateCount !== 0) {
    owed = rateOwedUnder(rateOwedAt(from.rateCount, words[word + OWED], words[word + SEEN_US], nowUs), from, to);
  } else if (to.rateCount !== 0 && lastUs !== Number.NEGATIVE_INFINITY) {
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
