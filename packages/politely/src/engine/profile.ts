import { isFollowed } from "../core/limits/places.js";
import type { Rule } from "../core/rule.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { ResetWhat } from "../types.js";

/** A policy and since when it is in force. */
export interface Era {
  readonly number: number;
  readonly policy: CompiledPolicy;
  readonly fromUs: number;
  /** It begins with a `reset` of every key. */
  readonly forget: ResetWhat | undefined;
}

/** A rule of one era, with what is derived from it once, so that a decision need not. */
export interface Profile {
  readonly rule: Rule;
  readonly era: number;
  /** Gap and bucket alone decide: no window, quota or places, and answers teach nothing. */
  readonly isSimple: boolean;
  readonly gapUs: number;
  readonly rateCount: number;
  readonly ratePerUs: number;
  readonly maxHoldUs: number;
  /** What a bucket may owe after a start, in unit-microseconds. */
  readonly owedMost: number;
  /** The largest cost that can ever fit, by limit. */
  readonly rateMost: number;
  readonly windowMost: number;
  readonly quotaMost: number;
}

/** The profiles of the eras that rows may still be of, by number. */
export class Profiles {
  readonly #list: (Profile | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #numbers = new Map<Rule, number>();

  /** The number of a rule's profile in an era. `isAlone`: requests take it without further keys, unless they name some. */
  numberOf(rule: Rule, era: number, isAlone: boolean): number {
    const known = this.#numbers.get(rule);
    if (known !== undefined && this.#list[known]?.era === era) return known;
    const number = this.#free.pop() ?? this.#list.length;
    this.#list[number] = profileOf(rule, era, isAlone);
    this.#numbers.set(rule, number);
    return number;
  }

  at(number: number): Profile {
    const profile = this.#list[number];
    if (profile === undefined) throw new Error(`A row is of profile ${number}, which is gone.`);
    return profile;
  }

  /** Lets the profiles of earlier eras go, of which no row is any more. */
  dropBefore(era: number): void {
    this.#list.forEach((profile, number) => {
      if (profile === undefined || profile.era >= era) return;
      if (this.#numbers.get(profile.rule) === number) this.#numbers.delete(profile.rule);
      this.#list[number] = undefined;
      this.#free.push(number);
    });
  }
}

function profileOf(rule: Rule, era: number, isAlone: boolean): Profile {
  const isBare = rule.windows.length === 0 && rule.quota === undefined && !isFollowed(rule);
  return {
    rule,
    era,
    isSimple: isAlone && isBare && rule.adaptive === undefined,
    gapUs: rule.gapUs,
    rateCount: rule.rateCount,
    ratePerUs: rule.ratePerUs,
    maxHoldUs: rule.maxHoldUs,
    owedMost: rule.burst * rule.ratePerUs,
    rateMost: rule.rateCount === 0 ? Number.POSITIVE_INFINITY : rule.burst,
    windowMost: rule.windows.reduce((most, { count }) => Math.min(most, count), Number.POSITIVE_INFINITY),
    quotaMost: rule.quota?.count ?? Number.POSITIVE_INFINITY,
  };
}
