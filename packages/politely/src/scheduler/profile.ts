import type { Rule } from "../core/rule.js";

/** What a rule that a store keeps means in this process: how long to wait, how many may queue, and which costs can never fit. Nothing of it binds here. */
export interface Profile {
  readonly rule: Rule;
  /** Neither limits nor answers hold it here, nor anything else but a pause. */
  readonly isOff: boolean;
  /** The largest cost that can ever fit, and which limit says so. */
  readonly rateMost: number;
  readonly windowMost: number;
  readonly quotaMost: number;
}

/** Derives a profile. */
export function sharedProfileOf(rule: Rule): Profile {
  return {
    rule,
    isOff: !rule.enabled,
    rateMost: rule.rateCount === 0 ? Number.POSITIVE_INFINITY : rule.burst,
    windowMost: rule.windows.reduce((most, { count }) => Math.min(most, count), Number.POSITIVE_INFINITY),
    quotaMost: rule.quota?.count ?? Number.POSITIVE_INFINITY,
  };
}

/** Profiles by number, one per rule. */
export class Profiles {
  #list: Profile[] = [];
  /** Some rule listens to successes, too. */
  hasAdaptive = false;
  #numbers = new Map<Rule, number>();

  constructor(readonly derive: (rule: Rule) => Profile) {}

  /** The number of a rule's profile. */
  numberOf(rule: Rule): number {
    const known = this.#numbers.get(rule);
    if (known !== undefined) return known;
    this.#list.push(this.derive(rule));
    this.#numbers.set(rule, this.#list.length - 1);
    if (rule.adaptive !== undefined) this.hasAdaptive = true;
    return this.#list.length - 1;
  }

  /** Begins anew, and returns the profiles so far by their old numbers. */
  restart(): readonly Profile[] {
    const before = this.#list;
    this.#list = [];
    this.#numbers = new Map();
    this.hasAdaptive = false;
    return before;
  }

  at(number: number): Profile {
    return this.#list[number];
  }
}
