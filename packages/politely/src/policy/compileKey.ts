import { compileRule } from "./compileRule.js";
import { plainHttp } from "./httpRules.js";
import { domainLimitsShape, isDomainLimits, limitsOfDomain, limitsShape } from "./limitsShape.js";
import type { CompiledPolicy, DomainLimits, HostRule, Limits } from "./types.js";
import { throwIfAny, validate } from "./validate.js";
import { warningsOfLimits } from "./warningsOfPolicy.js";

/** Makes the limits of a single key ready: whatever is asked, the answer is about `key`. Throws `PolicyError` listing every problem. */
export function compileKeyPolicy(given: Limits | DomainLimits, key: string): CompiledPolicy {
  const isDomain = isDomainLimits(given);
  throwIfAny(validate(isDomain ? domainLimitsShape : limitsShape, given, { allowFunctions: true }));
  const limits = isDomain ? limitsOfDomain(given) : given;
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
