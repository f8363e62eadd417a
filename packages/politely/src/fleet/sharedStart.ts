import { type Cost, NOTHING, ONE } from "../core/key.js";
import { isFollowed } from "../core/limits/places.js";
import type { Rule } from "../core/rule.js";
import { type Costs, costAt } from "../engine/arbiter.js";
import { type AskedKey, placeName, type SettleKey, type TakeReply } from "../stores/operations.js";

/** A start that the store has granted, with all that is needed to tell it of its end. */
export interface SharedStart {
  readonly keys: readonly string[];
  /** The rows of these keys in this process. */
  readonly slots: readonly number[];
  readonly rules: readonly Rule[];
  readonly costs: readonly Cost[];
  readonly startedUs: number;
  readonly grantedUs: number;
  readonly token: number;
  readonly place: string;
  readonly parts: readonly Pick<SettleKey, "previousUs" | "unitsAfter" | "period">[];
  /** The store knows that it is in flight. */
  readonly isFollowed: boolean;
}

/** The question that starts were granted to. */
export interface StartsAsked {
  readonly names: readonly string[];
  readonly slots: readonly number[];
  readonly asker: string;
  readonly number: number;
  readonly keys: readonly AskedKey[];
}

/** The starts of a reply, one by one. */
export function sharedStarts({ names, slots, asker, number, keys }: StartsAsked, reply: TakeReply): SharedStart[] {
  const rules = keys.map(({ rule }) => rule);
  const costs = keys.map(({ cost }) => cost);
  const about = { keys: names, slots, rules, costs, grantedUs: reply.nowUs };
  const starts: SharedStart[] = [];
  for (const { startedUs, count, token, parts } of reply.grants) {
    for (let nth = 0; nth < count; nth++) {
      const own = parts.map(({ previousUs, unitsBefore, period }, index) => ({
        previousUs: nth === 0 ? previousUs : startedUs,
        unitsAfter: (unitsBefore + (nth + 1) * costs[index].rate) >>> 0,
        period,
      }));
      const place = placeName(asker, number, starts.length);
      const isKnown = reply.isFollowed || rules.some(isFollowed);
      starts.push({ ...about, startedUs, token: token + nth, place, parts: own, isFollowed: isKnown });
    }
  }
  return starts;
}

/** What the store is told of each key when a start comes back: `spent` is undefined for one that was never sent. `meant`: which of the keys its answer speaks of. */
export function settleKeys(start: SharedStart, spent: Costs | undefined, meant: number): SettleKey[] {
  return start.keys.map((_, index) => {
    const cost = start.costs[index];
    const { rate, window, quota } = spent === undefined ? NOTHING : costAt(spent, index);
    const unused = { rate: cost.rate - rate, window: cost.window - window, quota: cost.quota - quota };
    return { rule: start.rules[index], cost, ...start.parts[index], unused, isMeant: index === meant };
  });
}

/** Keys at which one unit counts, and nothing slows this process down beyond their rules. */
export function asPlain(rules: readonly Rule[]): AskedKey[] {
  return rules.map((rule) => ({ rule, cost: ONE, slowUs: 0 }));
}

/** The name of a row in a store. */
export function storeName(limiter: string, rowName: string): string {
  const [host, kind, first, second] = rowName.split("\n");
  const name =
    host !== "" ? `host ${host}` : kind === "global" ? "global" : `${kind} ${[first, second].join(" ").trim()}`;
  return limiter === "" ? name : `${limiter}/${name}`;
}
