import type { Limits } from "politely";
import type { HostRule, ScopeRule } from "../policy/rules.js";
import { type Curve, planAlone } from "./alone.js";
import { onePerSecondMore } from "./pace.js";
import type { HostPlan, LongPole, PlanProgress, WhatIf } from "./plan.js";
import type { PlanTask } from "./planTask.js";

/** Up to so many requests that share a budget, a plan is made twice. For more, what the second would say is estimated. */
const MOST_PLAYED_TWICE = 250_000;
/** Requests by which the pace of two sets of limits is compared. */
const SAMPLE = 20_000;

/**
 * Finds out which host is done last, and with `hasWhatIf` what one more request a second would save there: at the host, or in
 * the budget of all hosts where that is what holds it back. `hosts` has the slowest first.
 */
export function* longPoleOf(
  task: PlanTask,
  hosts: readonly HostPlan[],
  hasWhatIf: boolean,
): Generator<PlanProgress, LongPole | undefined> {
  if (hosts.length === 0) return undefined;
  const [pole] = hosts;
  const firstOther = hosts.findIndex(({ endsAtMs }) => endsAtMs !== pole.endsAtMs);
  const ties = (firstOther === -1 ? hosts.length : firstOther) - 1;
  const whatIf = hasWhatIf ? yield* whatIfOf(task, hosts) : undefined;
  return { key: pole.key, ties, whatIf };
}

function* whatIfOf(task: PlanTask, hosts: readonly HostPlan[]): Generator<PlanProgress, WhatIf | undefined> {
  const { rules, shared, assumed, requests } = task;
  const [pole] = hosts;
  const rule = rules.get(pole.key);
  const scope = pole.binds?.scope;
  if (scope === undefined || rule?.limits === undefined) return undefined;
  const isShared = scope === "global" && shared !== undefined;
  const budget = pole.binds?.origin === undefined ? undefined : rule.scope;
  const limits = isShared ? shared : (budget?.limits ?? rule.limits);
  const loosened = onePerSecondMore(limits, assumed.latencyMs);
  if (task.isPlayed && requests > MOST_PLAYED_TWICE) {
    const share = finish(planAlone(loosened, SAMPLE, assumed)) / finish(planAlone(limits, SAMPLE, assumed));
    const lastMs = (pole.endsAtMs - assumed.latencyMs) * Math.min(1, share) + assumed.latencyMs;
    const second = isShared ? undefined : hosts[1];
    const isSecond = second !== undefined && second.endsAtMs > lastMs;
    return whatIfAt(scope, pole, isSecond ? second.endsAtMs : lastMs, isSecond ? second.key : pole.key, true);
  }
  const [last] = yield* isShared
    ? task.hosts(rules, loosened)
    : task.hosts(withLimits(rules, pole.key, { limits: loosened, budget }), shared);
  return whatIfAt(scope, pole, last.endsAtMs, last.key, false);
}

/** The rules with other limits for one host, or for the budget that it has with others. */
function withLimits(
  rules: ReadonlyMap<string, HostRule>,
  key: string,
  { limits, budget }: { readonly limits: Limits; readonly budget: ScopeRule | undefined },
): ReadonlyMap<string, HostRule> {
  const changed = (rule: HostRule, host: string): HostRule => {
    if (budget === undefined) return host === key ? { ...rule, limits } : rule;
    return rule.scope === budget ? { ...rule, scope: { ...budget, limits } } : rule;
  };
  return new Map([...rules].map(([host, rule]) => [host, changed(rule, host)]));
}

function whatIfAt(
  scope: WhatIf["scope"],
  pole: HostPlan,
  durationMs: number,
  thenLast: string,
  isEstimate: boolean,
): WhatIf {
  return { scope, durationMs, savedMs: Math.max(0, pole.endsAtMs - durationMs), thenLast, isEstimate };
}

/** The time from the first start to the last, at least a microsecond. */
function finish(steps: Generator<unknown, Curve>): number {
  for (;;) {
    const step = steps.next();
    if (step.done !== true) continue;
    const { starts } = step.value;
    return Math.max(0.001, starts[starts.length - 1]);
  }
}
