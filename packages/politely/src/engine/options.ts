import { checkNames } from "../core/checkNames.js";
import { type Cost, ONE } from "../core/key.js";
import type { Rule } from "../core/rule.js";
import type { AcquireOptions, Target } from "../types.js";
import { type Costs, costAt, type Need } from "./arbiter.js";

/** The largest cost of one request. */
const COST_MOST = 10_000_000;
const KINDS = ["rate", "window", "quota"] as const;
const PRIORITY_MOST = 1_000_000_000;

/** Reads a cost for the keys of a request. Throws `RangeError` for one that could never fit, `TypeError` for one that is none. */
export function costOf(need: Need, input: AcquireOptions["cost"], ruleOf: (slot: number) => Rule): Costs {
  // One unit fits every limit there can be.
  if (input === undefined || need.host.exempt) return ONE;
  const costs = readCost(need.scopeNames, input, 1);
  need.slots.forEach((slot, index) => {
    const rule = ruleOf(slot);
    const { rateCount, burst, windows, quota } = rule.whole ?? rule;
    const cost = costAt(costs, index);
    const check = (units: number, most: number, rule: string): void => {
      if (units <= most) return;
      const place = `${rule} ${most} (${need.scopeNames[index]} of "${need.key}")`;
      throw new RangeError(`A cost of ${units} can never fit: ${place}. Split the request or raise the limit.`);
    };
    if (rateCount > 0) check(cost.rate, burst, "burst is");
    if (windows.length > 0)
      check(cost.window, Math.min(...windows.map(({ count }) => count)), "its smallest window holds");
    if (quota !== undefined) check(cost.quota, quota.count, "its quota is");
  });
  return costs;
}

/** Reads a cost that need not fit, as given at a release, where 0 is fine too. */
export function readCost(scopeNames: readonly string[], input: AcquireOptions["cost"], least: 0 | 1): Costs {
  if (input === undefined || input === 1) return ONE;
  if (typeof input === "number") {
    const units = wholeUnits(input, "cost", least);
    return { rate: units, window: units, quota: units };
  }
  if (typeof input !== "object" || input === null)
    throw new TypeError(`cost must be a whole number or a record; got ${String(input)}.`);
  const known = [...scopeNames, ...KINDS];
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(
      `cost names "${unknown}", which fits no limit of this target. Known here: ${known.join(", ")}.`,
    );
  }
  return scopeNames.map((scope): Cost => {
    const [rate, window, quota] = KINDS.map((kind) => {
      const name = [scope, kind].find((each) => Object.hasOwn(input, each));
      return name === undefined ? 1 : wholeUnits(input[name], `cost.${name}`, least);
    });
    return { rate, window, quota };
  });
}

function wholeUnits(value: unknown, name: string, least: number): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a whole number; got ${String(value)}.`);
  if (Number.isInteger(value) && value >= least && value <= COST_MOST) return value;
  throw new RangeError(`${name} must be a whole number from ${least} to ${COST_MOST}; got ${value}.`);
}

/** Refuses options that make no sense: `TypeError` for a wrong type or name, `RangeError` for a wrong value. */
export function checkOptions(options: AcquireOptions): void {
  checkNames(options, ["signal", "maxWait", "priority", "cost"], "options");
  const { priority = 0, signal } = options;
  if (typeof priority !== "number") throw new TypeError(`priority must be a number; got ${String(priority)}.`);
  if (!(Math.abs(priority) <= PRIORITY_MOST)) {
    throw new RangeError(`priority must be a number from -${PRIORITY_MOST} to ${PRIORITY_MOST}; got ${priority}.`);
  }
  // Null, too, which a program without types may give.
  if (signal === undefined || typeof signal?.addEventListener === "function") return;
  throw new TypeError(`signal must be an AbortSignal, or left out; got ${signal === null ? "null" : typeof signal}.`);
}

/** Refuses a length of time where a host is meant. */
export function checkPaused(target: Target | undefined): void {
  if (typeof target !== "string" || !/^[\d.]+ ?(ms|s|m|min|h|d)$/.test(target)) return;
  throw new TypeError(
    `pause("${target}") names a host. To hold everything for a while, write pause(undefined, "${target}").`,
  );
}
