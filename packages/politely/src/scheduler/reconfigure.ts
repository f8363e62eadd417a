import type { Rule } from "../core/rule.js";
import type { CompiledPolicy } from "../policy/types.js";
import { ONE } from "./cost.js";
import { costOf, demandOfKey } from "./demand.js";
import type { Engine } from "./engine.js";
import { OVERFLOW_KEY } from "./keys.js";
import type { Waiter } from "./lane.js";
import type { Profile } from "./profile.js";

/** Puts another policy in force: for every key at once, for everybody queued, and without forgiving a debt. */
export function reconfigure(engine: Engine, policy: CompiledPolicy, nowUs: number): void {
  const { ledger, keys, queue } = engine;
  const before = ledger.profiles.restart();
  engine.policy = policy;
  engine.refresh();
  engine.counsel?.configured();
  const { slab } = ledger;
  const move = (slot: number, ruleOf: (from: Profile) => Rule): void => {
    const from = before[slab.profileNumber(slot)];
    keys.setRule(slot, ruleOf(from));
    engine.adaptive.conform(slot);
    keys.rouseIfOwing(slot, nowUs);
  };
  for (const [name, slot] of keys.hosts) move(slot, () => policy.hostRule(name).rule);
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

function scopeRule(policy: CompiledPolicy, name: string): Rule | undefined {
  if (name === OVERFLOW_KEY) return policy.overflow.rule;
  if (name === "global") return policy.global;
  const [kind, first, second] = name.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}
