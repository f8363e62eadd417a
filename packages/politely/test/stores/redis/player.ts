import type { Cost } from "../../../src/core/key.js";
import type { Rule } from "../../../src/core/rule.js";
import {
  type AskedKey,
  type LimitOperation,
  type Operation,
  placeName,
  type RenewedPlace,
  type SettleOperation,
  type TakeOperation,
  type TakeReply,
} from "../../../src/stores/operations.js";
import type { Action, History } from "./history.js";

/** An operation of a history, made ready. */
export interface Played {
  readonly keys: readonly string[];
  readonly operation: Operation;
  /** False for what comes too late to matter: nobody looks at its reply. */
  readonly isHeard?: boolean;
}

interface Granted {
  readonly keys: readonly string[];
  readonly operation: TakeOperation;
  readonly startedUs: number;
  readonly grantedUs: number;
  readonly place: string;
  readonly parts: readonly { readonly previousUs: number; readonly unitsAfter: number; readonly period: number }[];
}

interface Said {
  readonly last: Played & { readonly atMovedUs: number };
  readonly before: Played | undefined;
}

/** An answer is remembered for ten seconds. */
const rememberedUs = 9_000_000;

/** Turns the steps of a history into operations: chooses among what was granted so far. */
export class Player {
  readonly #rules: readonly Rule[];
  readonly #granted: Granted[] = [];
  readonly #said = new Map<string, Said>();
  #number = 0;
  #movedUs = 0;

  constructor({ rules }: History) {
    this.#rules = rules;
  }

  /** Time has moved, either way. */
  move(stepUs: number): void {
    this.#movedUs += Math.abs(stepUs);
  }

  /** The operation of a step; undefined when there is nothing to do it with. */
  operation(action: Action, nowUs: number): Played | undefined {
    switch (action.kind) {
      case "again":
        return this.#again(action.asker);
      case "late":
        return this.#late(action.asker);
      case "lease":
        return { keys: ["lease"], operation: { ...action, epochUs: 5 * nowUs } };
      case "look": {
        const keys = keysOf(action.keys);
        return { keys, operation: { kind: "look", keys: this.#keys(keys, action) } };
      }
      case "settle":
        return this.#settle(this.#granted[action.start % this.#granted.length], action);
      case "unused":
        return this.#unused(this.#granted.at(-1 - action.ago), action.answer);
      case "renew":
        return this.#renew(action);
      case "take": {
        const { keys: pick, asker, count, horizonUs, grainUs, doesWait, isTold } = action;
        const keys = keysOf(pick);
        const terms = { keys: this.#keys(keys, action), count, horizonUs, grainUs, doesWait, isTold };
        return this.#say(keys, { kind: "take", ...this.#sender(asker), ...terms });
      }
      case "record": {
        const { asker, agesUs, counts, units, owed, answer, meant, random, pauseUs, reset } = action;
        const keys = keysOf(action.keys);
        const starts = { agesUs: agesUs.toSorted((a, b) => b - a), counts: counts.slice(0, agesUs.length) };
        const spent = { units: units?.slice(0, agesUs.length), owed: owed?.slice(0, keys.length) };
        const told = { ...spent, answer, meant: meant % keys.length, random, pauseUs, reset };
        const asked = this.#keys(keys, action);
        return this.#say(keys, { kind: "record", ...this.#sender(asker), keys: asked, ...starts, ...told });
      }
    }
  }

  /** Hears the reply to a take. */
  heard({ keys, operation }: Played, reply: object): void {
    if (operation.kind !== "take") return;
    const { grants, nowUs } = reply as TakeReply;
    const first = placeName(operation.asker, operation.number, 0);
    // It was sent again.
    if (this.#granted.some(({ place }) => place === first)) return;
    let which = 0;
    for (const { startedUs, count, parts } of grants) {
      for (let nth = 0; nth < count; nth++, which++) {
        const place = placeName(operation.asker, operation.number, which);
        const each = parts.map(({ previousUs, unitsBefore, period }, index) => ({
          previousUs: nth === 0 ? previousUs : startedUs,
          unitsAfter: (unitsBefore + (nth + 1) * operation.keys[index].cost.rate) >>> 0,
          period,
        }));
        this.#granted.push({ keys, operation, startedUs, grantedUs: nowUs, place, parts: each });
      }
    }
  }

  #settle(start: Granted | undefined, action: Extract<Action, { kind: "settle" }>): Played | undefined {
    if (start === undefined) return undefined;
    const { answer, isOver, meant, random, unused } = action;
    // Nobody returns more than it took, but for what was never sent.
    const isUnsent = answer.kind === "unused";
    const backOf = (cost: Cost): Cost =>
      isUnsent
        ? cost
        : {
            rate: Math.min(unused.rate, cost.rate),
            window: Math.min(unused.window, cost.window),
            quota: Math.min(unused.quota, cost.quota),
          };
    return this.#settled(start, { answer, isOver: isOver || isUnsent, random }, meant % start.keys.length, backOf);
  }

  #unused(start: Granted | undefined, answer: SettleOperation["answer"]): Played | undefined {
    if (start === undefined) return undefined;
    return this.#settled(start, { answer, isOver: true, random: 0 }, -1, (cost) => cost);
  }

  #settled(
    { keys, operation, startedUs, grantedUs, place, parts }: Granted,
    told: Pick<SettleOperation, "answer" | "isOver" | "random">,
    meant: number,
    backOf: (cost: Cost) => Cost,
  ): Played {
    const settled = operation.keys.map(({ rule, cost }, index) => {
      return { rule, cost, ...parts[index], unused: backOf(cost), isMeant: index === meant };
    });
    const asker = `${operation.asker}s${this.#number % 3}`;
    const terms = { startedUs, grantedUs, place, ...told, keys: settled };
    return this.#say(keys, { kind: "settle", ...this.#sender(asker), ...terms });
  }

  #renew(action: Extract<Action, { kind: "renew" }>): Played {
    const { process, completeBefore, gone, isLeaving, places: picks } = action;
    const keys = keysOf(action.keys);
    const rules = keys.map((_, index) => this.#rule(action.rules[index]));
    const own = this.#granted.filter(({ place }) => place.startsWith(`${process}.`));
    const named = isLeaving || own.length === 0 ? [] : picks.map((pick) => own[pick % own.length]);
    const places = keys.map((key) =>
      [...new Set(named)].flatMap(({ place, startedUs, keys: theirs, operation }): RenewedPlace[] => {
        const { rule, cost } = operation.keys[theirs.indexOf(key)] ?? {};
        if (rule === undefined || cost === undefined) return [];
        const { maxHoldUs, permitTtlUs: ttlUs } = rule;
        const pendingUnits = rule.fromAnswer ? cost.window : 0;
        return [{ id: place, startedUs, units: cost.window, pendingUnits, maxHoldUs, ttlUs }];
      }),
    );
    return { keys, operation: { kind: "renew", process, rules, places, completeBefore, gone, isLeaving } };
  }

  #sender(asker: string): { asker: string; number: number; isAgain: boolean } {
    this.#number += 1;
    return { asker, number: this.#number, isAgain: false };
  }

  #say(keys: readonly string[], operation: Extract<LimitOperation, { asker: string }>): Played {
    const played = { keys, operation };
    const last = { ...played, atMovedUs: this.#movedUs };
    this.#said.set(operation.asker, { last, before: this.#said.get(operation.asker)?.last });
    return played;
  }

  #again(asker: string): Played | undefined {
    const last = this.#said.get(asker)?.last;
    return last !== undefined && this.#movedUs - last.atMovedUs < rememberedUs ? last : undefined;
  }

  /** The operation before the last one, of which a store knows that it is late where both were for the same key. */
  #late(asker: string): Played | undefined {
    const { last, before } = this.#said.get(asker) ?? {};
    if (last === undefined || before === undefined || this.#movedUs - last.atMovedUs >= rememberedUs) return undefined;
    return before.keys.join() === last.keys.join() && before.operation.kind === last.operation.kind
      ? { ...before, isHeard: false }
      : undefined;
  }

  #keys(
    names: readonly string[],
    { rules, cost, slowUs }: { rules: readonly number[]; cost: Cost; slowUs: number },
  ): AskedKey[] {
    return names.map((_, index) => {
      const rule = this.#rule(rules[index]);
      return { rule, cost: fitting(cost, rule), slowUs };
    });
  }

  #rule(pick: number): Rule {
    // The first policy is the usual one.
    const number = pick % (2 * this.#rules.length);
    return this.#rules[number < this.#rules.length ? number : 0];
  }
}

/** A cost never exceeds a limit: policies refuse such. */
function fitting(cost: Cost, { burst, windows, quota, rateCount }: Rule): Cost {
  return {
    rate: rateCount > 0 ? Math.min(cost.rate, burst) : cost.rate,
    window: Math.min(cost.window, ...windows.map(({ count }) => count)),
    quota: quota === undefined ? cost.quota : Math.min(cost.quota, quota.count),
  };
}

function keysOf(pick: number): readonly string[] {
  const sets = [["a"], ["a"], ["a"], ["b"], ["a", "b"], ["b", "a"], ["c", "a", "b"], ["a", "ü {x}"]];
  return sets[pick % sets.length];
}
