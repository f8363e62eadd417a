import { PolicyError, type PolicyProblem } from "../errors.js";
import { compileRule } from "./compileRule.js";
import { plainHttp } from "./httpRules.js";
import { limitsShape } from "./limitsShape.js";
import type { CompiledPolicy, HostRule, Limits } from "./types.js";
import { validate } from "./validate.js";
import { warningsOfLimits } from "./warningsOfPolicy.js";

/** Makes the limits of a single key ready: whatever is asked, the answer is about `key`. Throws `PolicyError` listing every problem. */
export function compileKeyPolicy(limits: Limits, key: string): CompiledPolicy {
  throwIfAny(validate(limitsShape, limits, { allowFunctions: true }));
  const hostRule: HostRule = { rule: compileRule(limits), origin: "limits", intents: new Map(), exempt: false };
  const resolved = { key, intent: undefined, scopes: [] };
  return {
    hostRule: () => hostRule,
    overflow: hostRule,
    scopeRule: () => undefined,
    global: undefined,
    resolve: () => resolved,
    isEnabled: () => hostRule.rule.enabled,
    hostIsKey: true,
    groupBy: undefined,
    together: new Map(),
    http: plainHttp,
    contactWantedBy: () => undefined,
    warnings: warningsOfLimits(limits, ""),
  };
}

/** Throws `PolicyError` with all problems, if there is any. */
export function throwIfAny(problems: readonly PolicyProblem[]): void {
  if (problems.length > 0) throw new PolicyError(problems);
}
