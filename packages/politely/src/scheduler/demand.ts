import type { CompiledPolicy, HostRule, ResolvedTarget } from "../policy/types.js";
import type { AcquireOptions, Target } from "../types.js";
import { ONE } from "./cost.js";
import { intentRow, type Keys, OVERFLOW_KEY } from "./keys.js";
import { costAt, type LaneCost, type LaneSpec } from "./lane.js";
import type { Ledger } from "./ledger.js";
import { EXEMPT_ONLY } from "./permit.js";

/** A target with the rows it needs, and the rule of its host. */
export interface Demand extends LaneSpec {
  readonly host: HostRule;
  readonly target: ResolvedTarget;
}

/** The largest cost of one request. */
const COST_MOST = 10_000_000;

/** Finds the rows a target needs, making those that do not exist yet. Throws `TypeError` for a target that makes no sense. */
export function demandOf(policy: CompiledPolicy, keys: Keys, target: Target, nowUs: number): Demand {
  const parts = policy.resolve(target);
  if (keys.hosts.has(parts.key)) return demandOfKey(policy, keys, parts, nowUs);
  keys.sweep(nowUs);
  // A key cut out of a URL would keep the whole URL alive for as long as the key is known.
  const key = parts.key === target ? parts.key : ` ${parts.key}`.slice(1);
  return demandOfKey(policy, keys, { ...parts, key }, nowUs);
}

/** The same for a target that was taken apart before. Scopes that the policy no longer knows are left out when `isLenient`. */
export function demandOfKey(
  policy: CompiledPolicy,
  keys: Keys,
  target: ResolvedTarget,
  nowUs: number,
  isLenient = false,
): Demand {
  const { intent, scopes } = target;
  const host = policy.hostRule(target.key);
  const own = keys.host(target.key, host.rule, nowUs);
  const isShared = own === undefined && host.rule.enabled;
  const key = isShared ? OVERFLOW_KEY : target.key;
  const slots = [own ?? (isShared ? keys.scope(OVERFLOW_KEY, policy.overflow.rule) : keys.free(host.rule))];
  const scopeNames = ["host"];
  const add = (scopeName: string, slot: number): void => {
    slots.push(slot);
    scopeNames.push(scopeName);
  };
  if (host.exempt) {
    return { name: key, key, intent: undefined, slots, host, scopeNames: EXEMPT_ONLY, target };
  }
  const intentRule = intent === undefined ? undefined : host.intents.get(intent);
  let intentName = "";
  let intentOwner: string | undefined;
  if (intent !== undefined && intentRule !== undefined) {
    const owner = isShared ? keys.intentOwner(target.key, entryOf(host), intent) : key;
    intentName = isShared ? `${intent}\t${owner}` : intent;
    if (isShared) intentOwner = owner;
    add("intent", keys.scope(intentRow(owner, intent), intentRule));
  }
  for (const scope of host.scopes === undefined ? scopes : new Set([...host.scopes, ...scopes])) {
    const rule = policy.scopeRule(scope);
    if (rule !== undefined) add(scope, keys.scope(scopeRow(scope), rule));
    else if (!isLenient)
      throw new TypeError(`target.scopes names "${scope}", which no entry of the policy's scopes matches.`);
  }
  if (policy.global !== undefined) add("global", keys.scope("global", policy.global));
  const isPlain = intentRule === undefined && scopes.length === 0;
  const name = isPlain ? key : [key, intentName, ...scopes].join("\n");
  return { name, key, intent, intentOwner, slots, host, scopeNames, target };
}

/** A demand for somebody who waits, while another policy may come: where a grouping has made the key, it says what of. */
export function withAsked(policy: CompiledPolicy, demand: Demand, target: Target): Demand {
  if (policy.hostIsKey) return demand;
  const asked = typeof target === "string" || "href" in target ? target : (target.url ?? target.host);
  return { ...demand, target: { ...demand.target, asked: String(asked) } };
}

/** What the policy's entry for a host is called: the host's name, or a pattern that finds the same entry. */
function entryOf({ origin }: HostRule): string {
  return origin.startsWith("hosts.") ? origin.slice("hosts.".length) : origin;
}

/** The name of a scope's row. */
export function scopeRow(scope: string): string {
  return `scope\n${scope}`;
}

/** Reads a cost for the rows of a demand. Throws `RangeError` for one that could never fit, `TypeError` for one that is none. */
export function costOf(ledger: Ledger, demand: Demand, input: AcquireOptions["cost"]): LaneCost {
  // One unit fits every limit there can be.
  if (input === undefined || demand.host.exempt) return ONE;
  const cost = readCost(demand, input, 1);
  demand.slots.forEach((slot, index) => {
    const { rateMost, windowMost, quotaMost } = ledger.profileOf(slot);
    const at = costAt(cost, index);
    const place = `${demand.scopeNames[index]} of "${demand.key}"`;
    if (at.rate > rateMost) throw tooMuch(at.rate, `burst is ${rateMost}`, place);
    if (at.window > windowMost) throw tooMuch(at.window, `its smallest window holds ${windowMost}`, place);
    if (at.quota > quotaMost) throw tooMuch(at.quota, `its quota is ${quotaMost}`, place);
  });
  return cost;
}

/** Reads a cost that need not fit, as given at a release, where 0 is fine too. */
export function readCost(
  demand: { readonly scopeNames: readonly string[] },
  input: AcquireOptions["cost"],
  least: 0 | 1,
): LaneCost {
  if (input === undefined || input === 1) return ONE;
  if (typeof input === "number") {
    const units = wholeUnits(input, "cost", least);
    return { rate: units, window: units, quota: units };
  }
  if (typeof input !== "object" || input === null)
    throw new TypeError(`cost must be a whole number or a record; got ${String(input)}.`);
  for (const name of Object.keys(input)) {
    if (!demand.scopeNames.includes(name) && !["rate", "window", "quota"].includes(name)) {
      const known = [...demand.scopeNames, "rate", "window", "quota"].join(", ");
      throw new RangeError(`cost names "${name}", which fits no limit of this target. Known here: ${known}.`);
    }
  }
  const of = (scope: string, kind: "rate" | "window" | "quota"): number => {
    const name = Object.hasOwn(input, scope) ? scope : kind;
    return Object.hasOwn(input, name) ? wholeUnits(input[name], `cost.${name}`, least) : 1;
  };
  return demand.scopeNames.map((scope) => ({
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
