import type { HostRule } from "../policy/rules.js";
import type { HostPlan } from "./plan.js";

/** Hosts that their site counts as one. */
interface Party {
  readonly members: string[];
  /** What all of them have by the policy. */
  readonly rule: HostRule;
}

/**
 * Sees hosts that their site counts as one as a single host: whenever their common budget has room, each of them has, since its own
 * limits are the same and it has used less of them. All other hosts are as they were.
 */
export class Parties {
  /** How many requests each has. A party goes by the name of its budget, which no host can have. */
  readonly counts: ReadonlyMap<string, number>;
  readonly #parties = new Map<string, Party>();

  constructor(
    readonly given: ReadonlyMap<string, number>,
    rules: ReadonlyMap<string, HostRule>,
  ) {
    const counts = new Map<string, number>();
    for (const [key, count] of given) {
      const rule = rules.get(key);
      const name = rule?.together ?? key;
      counts.set(name, (counts.get(name) ?? 0) + count);
      if (rule?.together === undefined) continue;
      const party = this.#parties.get(name) ?? { members: [], rule };
      party.members.push(key);
      this.#parties.set(name, party);
    }
    this.counts = counts;
  }

  /** The rules of all, when hosts have these: a party has the rule of a member that has another than by the policy. */
  rules(rules: ReadonlyMap<string, HostRule>): ReadonlyMap<string, HostRule> {
    if (this.#parties.size === 0) return rules;
    const all = new Map(rules);
    for (const [name, { members, rule }] of this.#parties) {
      const other = members.find((key) => rules.get(key) !== rule);
      all.set(name, (other === undefined ? undefined : rules.get(other)) ?? rule);
    }
    return all;
  }

  /** The plans of all hosts. Members of a party start in turn, as in the engine's queue. */
  split(plans: readonly HostPlan[], latencyMs: number): readonly HostPlan[] {
    return plans.flatMap((plan) => {
      const party = this.#parties.get(plan.key);
      return party === undefined ? [plan] : this.#splitOne(plan, party.members, latencyMs);
    });
  }

  #splitOne(plan: HostPlan, members: readonly string[], latencyMs: number): HostPlan[] {
    const asked = members.map((key) => this.given.get(key) ?? 0);
    const starts = members.map((): number[] => []);
    let turn = 0;
    for (const start of plan.starts) {
      while (starts[turn].length >= asked[turn]) turn = (turn + 1) % members.length;
      starts[turn].push(start);
      turn = (turn + 1) % members.length;
    }
    return members.flatMap((key, member) => {
      const own = starts[member];
      const requests = asked[member];
      if (requests === 0) return [];
      // Where the end is an estimate, it is that of all of them.
      const endsAtMs = own.length === requests ? own[requests - 1] + latencyMs : plan.endsAtMs;
      return [{ ...plan, key, requests, starts: Float64Array.from(own), endsAtMs }];
    });
  }
}
