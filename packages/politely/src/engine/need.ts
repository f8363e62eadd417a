import { type Cost, ONE } from "../core/key.js";
import type { CompiledPolicy, HostRule, ResolvedTarget } from "../policy/types.js";
import type { AcquireOptions, Target } from "../types.js";
import type { Profile } from "./profile.js";

/** The keys a request needs, all at once. Requests with the same name stand in one lane. */
export interface Need {
  readonly name: string;
  /** The key of the host. */
  readonly key: string;
  /** The rows of its keys: the host first, then intent, scopes and `global` as far as it has them. */
  readonly slots: readonly number[];
  /** `"host"`, `"intent"`, a scope's name or `"global"` for each of `slots`. */
  readonly scopeNames: readonly string[];
  /** The names of the rows, for each of `slots`. */
  readonly rowNames: readonly string[];
  readonly host: HostRule;
  readonly target: ResolvedTarget;
}

/** One cost for every key of a request, or one for each. */
export type Costs = Cost | readonly Cost[];

/** The scope names of a request that needs its host alone. */
export const HOST_ONLY: readonly string[] = ["host"];

/** The largest cost of one request. */
const COST_MOST = 10_000_000;
const KINDS = ["rate", "window", "quota"] as const;

/** The cost at key number `index`. */
export function costAt(costs: Costs, index: number): Cost {
  return "rate" in costs ? costs : costs[index];
}

/** The name of a scope's row. */
export function scopeRow(scope: string): string {
  return `scope\n${scope}`;
}

/** The name of an intent's row. */
export function intentRow(host: string, intent: string): string {
  return `intent\n${host}\n${intent}`;
}

/** What a key of a request is called in a sentence. */
export function keyName({ key, target, scopeNames }: Need, index: number): string {
  const scope = scopeNames[index];
  return scope === "host" ? key : scope === "intent" ? `${key} (${target.intent})` : scope;
}

/** Whether a policy limits a target at all: at its host, its intent, one of its scopes, or everything together. */
export function isEnabledBy(policy: CompiledPolicy, target: Target): boolean {
  const { key, intent, scopes } = policy.resolve(target);
  const host = policy.hostRule(key);
  if (host.exempt) return false;
  const others = [policy.global, host.intents.get(intent ?? ""), ...scopes.map((scope) => policy.scopeRule(scope))];
  return host.rule.enabled || others.some((rule) => rule?.enabled === true);
}

/** Reads a cost for the keys of a request. Throws `RangeError` for one that could never fit, `TypeError` for one that is none. */
export function costOf(need: Need, input: AcquireOptions["cost"], profileOf: (slot: number) => Profile): Costs {
  // One unit fits every limit there can be.
  if (input === undefined || need.host.exempt) return ONE;
  const costs = readCost(need.scopeNames, input, 1);
  need.slots.forEach((slot, index) => {
    const { rateMost, windowMost, quotaMost } = profileOf(slot);
    const at = costAt(costs, index);
    const place = `${need.scopeNames[index]} of "${need.key}"`;
    if (at.rate > rateMost) throw tooMuch(at.rate, `burst is ${rateMost}`, place);
    if (at.window > windowMost) throw tooMuch(at.window, `its smallest window holds ${windowMost}`, place);
    if (at.quota > quotaMost) throw tooMuch(at.quota, `its quota is ${quotaMost}`, place);
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
  for (const name of Object.keys(input)) {
    if (known.includes(name)) continue;
    throw new RangeError(`cost names "${name}", which fits no limit of this target. Known here: ${known.join(", ")}.`);
  }
  const of = (scope: string, kind: (typeof KINDS)[number]): number => {
    const name = Object.hasOwn(input, scope) ? scope : kind;
    return Object.hasOwn(input, name) ? wholeUnits(input[name], `cost.${name}`, least) : 1;
  };
  return scopeNames.map((scope) => ({
    rate: of(scope, "rate"),
    window: of(scope, "window"),
    quota: of(scope, "quota"),
  }));
}

function wholeUnits(value: unknown, name: string, least: number): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a whole number; got ${String(value)}.`);
  if (!Number.isInteger(value) || value < least || value > COST_MOST) {
    throw new RangeError(`${name} must be a whole number from ${least} to ${COST_MOST}; got ${value}.`);
  }
  return value;
}

function tooMuch(cost: number, rule: string, place: string): RangeError {
  return new RangeError(`A cost of ${cost} can never fit: ${rule} (${place}). Split the request or raise the limit.`);
}
