import type { Rule } from "../core/rule.js";
import type { CompiledPolicy } from "../policy/types.js";
import { convertRow } from "./convertRow.js";
import { ONE } from "./cost.js";
import { costOf, demandOfKey } from "./demand.js";
import type { Engine } from "./engine.js";
import { GENERATION_US } from "./flight.js";
import { withHeritage } from "./heritage.js";
import { OVERFLOW_KEY } from "./keys.js";
import type { Waiter } from "./lane.js";
import type { Profile } from "./profile.js";
import { keyUnder, Renames } from "./renames.js";

/** Puts another policy in force: for every key at once, for everybody queued, and without forgiving a debt. */
export function reconfigure(engine: Engine, next: CompiledPolicy, nowUs: number): void {
  const { ledger, keys, queue } = engine;
  // The caller's own code may run here, so nothing has changed yet.
  const renames = new Renames(engine, next);
  const policy = withHeritage(engine, next, nowUs);
  const before = ledger.profiles.restart();
  engine.policy = policy;
  engine.refresh();
  engine.counsel?.configured();
  const { slab } = ledger;
  const move = (slot: number, ruleOf: (from: Profile) => Rule): void => {
    const from = before[slab.profileNumber(slot)];
    keys.setRule(slot, ruleOf(from));
    convertRow(ledger, slot, from.rule, nowUs);
    engine.adaptive.conform(slot);
    keys.rouseIfOwing(slot, nowUs);
  };
  for (const [name, slot] of keys.hosts) move(slot, () => policy.hostRule(renames.of(name)).rule);
  // A scope that the policy no longer knows keeps its rule until those in flight are back.
  for (const [name, slot] of keys.scopes) move(slot, (from) => scopeRule(policy, renames.ofScope(name)) ?? from.rule);
  followMoved(engine, nowUs);
  renames.apply(nowUs);
  const regrouped = regroup(engine);
  const misfits: { waiter: Waiter; error: unknown }[] = [];
  queue.rebuild((waiter) => {
    const key = regrouped.get(waiter) ?? renames.of(waiter.target.key);
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

/**
 * The keys of those who wait under the name of a group, which says nothing about their hosts: as they would be if they came now.
 *
 * Works them out before the queue changes, since the caller's own code may run here.
 */
function regroup({ policy, queue }: Engine): ReadonlyMap<Waiter, string> {
  const keys = new Map<Waiter, string>();
  for (const lane of Array.from(queue.lanes.values())) {
    for (const waiter of lane.everybody()) {
      const { asked } = waiter.target;
      const key = asked === undefined ? undefined : keyUnder(policy, asked);
      if (key !== undefined) keys.set(waiter, key);
    }
  }
  return keys;
}

/** Rows that have become part of others have the rules of these, and go when no permit can lead to them any more. */
function followMoved({ ledger, keys }: Engine, nowUs: number): void {
  for (const [slot, { into, joinedUs }] of ledger.loose.moved.all()) {
    const { rule } = ledger.profileOf(into);
    // What was held for longer than permits may be held by now is not held any more.
    ledger.lapse(into, nowUs);
    if (joinedUs + Math.max(2 * GENERATION_US, rule.maxHoldUs) <= nowUs) ledger.letGo(slot);
    else keys.setRule(slot, rule);
  }
}

function scopeRule(policy: CompiledPolicy, name: string): Rule | undefined {
  if (name === OVERFLOW_KEY) return policy.overflow.rule;
  if (name === "global") return policy.global;
  const [kind, first, second] = name.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}
