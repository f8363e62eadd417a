import type { Rule } from "../core/rule.js";

/** A rule with what the scheduler derives from it once, so that a decision does not. */
export interface Profile {
  readonly rule: Rule;
  /** Gap and bucket alone decide: no window, quota, concurrency or answers to count from. */
  readonly isSimple: boolean;
  /** Every permit is followed until its release: concurrency, or counting from the answer. */
  readonly isFollowed: boolean;
  /** Neither limits nor answers hold it here, nor anything else but a pause. */
  readonly isOff: boolean;
  readonly gapUs: number;
  readonly rateCount: number;
  readonly ratePerUs: number;
  /** What a bucket may owe after a start, in unit-microseconds. */
  readonly owedMost: number;
  /** The largest cost that can ever fit, and which limit says so. */
  readonly rateMost: number;
  readonly windowMost: number;
  readonly quotaMost: number;
}

/** Derives a profile. */
export function profileOf(rule: Rule): Profile {
  const isFollowed = rule.concurrency !== Number.POSITIVE_INFINITY || rule.fromAnswer;
  return {
    rule,
    isSimple: rule.windows.length === 0 && rule.quota === undefined && !isFollowed,
    isFollowed,
    isOff: !rule.enabled,
    gapUs: rule.gapUs,
    rateCount: rule.rateCount,
    ratePerUs: rule.ratePerUs,
    owedMost: rule.burst * rule.ratePerUs,
    rateMost: rule.rateCount === 0 ? Number.POSITIVE_INFINITY : rule.burst,
    windowMost: rule.windows.reduce((most, { count }) => Math.min(most, count), Number.POSITIVE_INFINITY),
    quotaMost: rule.quota?.count ?? Number.POSITIVE_INFINITY,
  };
}

/**
 * The profile of a rule that a shared store keeps: nothing of it binds in this process, but how long to wait, how many may
 * queue, and which costs can never fit.
 */
export function sharedProfileOf(rule: Rule): Profile {
  const { rateMost, windowMost, quotaMost } = profileOf(rule);
  const unbound: Rule = {
    ...rule,
    enabled: false,
    gapUs: 0,
    rateCount: 0,
    ratePerUs: 0,
    burst: 1,
    windows: [],
    quota: undefined,
    concurrency: Number.POSITIVE_INFINITY,
    fromAnswer: false,
  };
  // What robots.txt or `adaptive` ask is kept here all the same.
  return { ...profileOf(unbound), isOff: !rule.enabled, rateMost, windowMost, quotaMost };
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
