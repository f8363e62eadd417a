import type { Limits, PolicyInput } from "politely";
import { shortLimits } from "../../get/shortLimits.js";
import { Rules } from "../../policy/rules.js";

/** What the limits of a host come to. */
export interface Pace {
  /** `"2/s burst 5, concurrency 4"`; `"no limit"`. */
  readonly words: string;
  /** Starts a second in the long run, by gap, rate and windows; null where none of them limits. A quota does not count: it allows any speed until it is used up. */
  readonly perSecond: number | null;
  /** Undefined: none at all. */
  readonly limits: Limits | undefined;
}

/** Tells the pace of each host under a policy. Hosts with the same entry have the same object. */
export class Paces {
  readonly #rules: Rules;
  readonly #paces = new Map<string, Pace>();
  /** What all hosts together may do; null where `global` sets no pace. */
  readonly globalPerSecond: number | null;

  /** `policy` is one that a limiter has taken. */
  constructor(readonly policy: PolicyInput) {
    this.#rules = new Rules(policy);
    this.globalPerSecond = perSecondOf(this.#rules.global);
  }

  /** The limits over everything together. */
  get global(): Limits | undefined {
    return this.#rules.global;
  }

  of(key: string): Pace {
    const { origin, limits } = this.#rules.of(key);
    let pace = this.#paces.get(origin);
    if (pace === undefined) {
      pace = this.#make(limits);
      // There are as many origins as entries of the policy, presets included.
      this.#paces.set(origin, pace);
    }
    return pace;
  }

  #make(limits: Limits | undefined): Pace {
    if (limits === undefined) return { words: "no limit", perSecond: null, limits };
    const { global } = this.#rules;
    const own = shortLimits(limits).text;
    const words = global === undefined ? own : `${own}; all hosts together ${shortLimits(global).text}`;
    const speeds = [perSecondOf(limits), this.globalPerSecond].filter((speed) => speed !== null);
    return { words, perSecond: speeds.length === 0 ? null : Math.min(...speeds), limits };
  }
}

function perSecondOf(limits: Limits | undefined): number | null {
  if (limits === undefined) return null;
  return shortLimits({ ...limits, quota: undefined }).perSec ?? null;
}
