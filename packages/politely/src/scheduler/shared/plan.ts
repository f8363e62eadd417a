import type { Rule } from "../../core/rule.js";
import type { CompiledPolicy } from "../../policy/types.js";
import type { SharedRule } from "../../shared/operation.js";
import { isFollowed, ruleIdOf, sharedRuleOf } from "../../shared/ruleNumbers.js";
import { OVERFLOW_KEY } from "../keys.js";
import type { LaneSpec } from "../lane.js";

/**
 * Starts are granted ahead by at most this: far enough that a process which wakes up late, or a store that answers late, does not make
 * them late, and less than the time within which everybody has to hear of a 429.
 */
export const HORIZON_US = 50_000;

/** Starts that are asked for at once without `batch`: as many as wait, up to this. */
const TOGETHER_MOST = 64;
/** With `batch`, at most so much of the rate is taken at a time; of a short window this part of it. */
const BATCH_US = 10_000;
const BATCH_PART = 100;
const BATCH_MOST = 10_000;
/** A place is kept for at least so long, however short `permitTtl` is: it is renewed three times in that. */
const LEASE_LEAST_US = 1_000_000;

/** One key of a plan. */
export interface PlanKey {
  readonly rule: Rule;
  readonly shared: SharedRule;
  readonly ruleId: string;
}

/** How the requests of one lane are put to the store: worked out once per lane and policy. */
export interface Plan {
  /** Names in the store, the host's first. */
  readonly storeKeys: readonly string[];
  readonly keys: readonly PlanKey[];
  /** `"host"`, `"intent"`, a scope's name or `"global"` for each of `keys`. */
  readonly scopeNames: readonly string[];
  /** Nothing applies: no question is asked. */
  readonly isFree: boolean;
  /** Places are kept, and have to be given back. */
  readonly isFollowed: boolean;
  readonly hasQuota: boolean;
  readonly leaseUs: number;
  readonly maxHoldUs: number;
  /** With `batch`: how much of the rate is taken at a time, and how much later than granted it may be used. */
  readonly batchUs: number;
  /** Starts asked for at once, at most. */
  readonly most: number;
}

/** Makes the plan of a lane. */
export function planOf(
  policy: CompiledPolicy,
  spec: LaneSpec,
  { isBatch, name }: { readonly isBatch: boolean; readonly name: string },
): Plan {
  const host = spec.key === OVERFLOW_KEY ? policy.overflow : policy.hostRule(spec.key);
  const keys: PlanKey[] = [];
  const storeKeys: string[] = [];
  const scopeNames: string[] = [];
  spec.scopeNames.forEach((scope) => {
    const rule = ruleOf(policy, spec, scope);
    if (rule === undefined) return;
    const shared = sharedRuleOf(rule);
    keys.push({ rule, shared, ruleId: ruleIdOf(shared) });
    storeKeys.push(storeName(name, storeKeyOf(spec, scope)));
    scopeNames.push(scope);
  });
  const batchUs = batchSpanUs(keys);
  return {
    storeKeys,
    keys,
    scopeNames,
    isFree: host.exempt || keys.every(({ rule }) => !rule.enabled),
    isFollowed: keys.some(({ shared }) => isFollowed(shared)),
    hasQuota: keys.some(({ shared }) => shared.quota > 0),
    leaseUs: Math.max(LEASE_LEAST_US, Math.min(...keys.map(({ rule }) => rule.permitTtlUs))),
    maxHoldUs: Math.min(...keys.map(({ rule }) => rule.maxHoldUs)),
    batchUs,
    most: isBatch ? batchMost(keys, batchUs) : TOGETHER_MOST,
  };
}

/** A name in the store, after that of the limiter. */
export function storeName(limiter: string, key: string): string {
  return limiter === "" ? key : `${limiter}/${key}`;
}

/** What a key is called in the store. */
function storeKeyOf({ key, intent, intentOwner = key }: LaneSpec, scope: string): string {
  if (scope === "host") return `host ${key}`;
  if (scope === "intent") return `intent ${intentOwner} ${intent}`;
  return scope === "global" ? "global" : `scope ${scope}`;
}

function ruleOf(policy: CompiledPolicy, { key, intent, intentOwner = key }: LaneSpec, scope: string): Rule | undefined {
  if (scope === "host") return (key === OVERFLOW_KEY ? policy.overflow : policy.hostRule(key)).rule;
  if (scope === "intent") return policy.hostRule(intentOwner).intents.get(intent ?? "");
  return scope === "global" ? policy.global : policy.scopeRule(scope);
}

/** So long that what is used late stays a small part of what the shortest window allows. */
function batchSpanUs(keys: readonly PlanKey[]): number {
  let spanUs = BATCH_US;
  for (const { windows } of keys.map(({ shared }) => shared)) {
    for (let index = 1; index < windows.length; index += 3) spanUs = Math.min(spanUs, windows[index] / BATCH_PART);
  }
  return spanUs;
}

/** What the slowest limit lets through in the time that may be taken ahead. */
function batchMost(keys: readonly PlanKey[], batchUs: number): number {
  let most = BATCH_MOST;
  for (const { shared } of keys) {
    if (shared.gapUs > 0) most = Math.min(most, batchUs / shared.gapUs);
    if (shared.rateCount > 0) most = Math.min(most, (batchUs * shared.rateCount) / shared.ratePerUs);
    for (let index = 0; index < shared.windows.length; index += 3) {
      most = Math.min(most, (batchUs * shared.windows[index]) / shared.windows[index + 1]);
    }
    if (shared.concurrency > 0) most = Math.min(most, shared.concurrency);
  }
  return Math.max(1, Math.floor(most));
}

/** Whether two plans ask the same keys for the same. */
export function isSamePlan(one: Plan, other: Plan): boolean {
  if (one === other) return true;
  if (one.keys.length !== other.keys.length) return false;
  return one.keys.every(
    ({ ruleId }, index) => ruleId === other.keys[index].ruleId && one.storeKeys[index] === other.storeKeys[index],
  );
}
