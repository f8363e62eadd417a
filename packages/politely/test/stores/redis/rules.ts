import { ONE } from "../../../src/core/key.js";
import type { Rule } from "../../../src/core/rule.js";
import type { AskedKey } from "../../../src/stores/operations.js";

/** A rule with no limit but these. */
export function ruleOf(limits: Partial<Rule>): Rule {
  const rule = { ...NO_LIMIT, ...limits };
  const hasRate = rule.rateCount > 0;
  return {
    ...rule,
    ratePerUs: hasRate ? rule.ratePerUs : 0,
    burst: hasRate ? rule.burst : 1,
    text: {
      minDelay: `${rule.gapUs} µs`,
      rate: `${rule.rateCount}/${rule.ratePerUs} µs`,
      quota: String(rule.quota?.count),
      concurrency: String(rule.concurrency),
      windows: rule.windows.map(({ count, perUs }) => `${count}/${perUs} µs`),
    },
  };
}

const NO_LIMIT: Rule = {
  enabled: true,
  gapUs: 0,
  rateCount: 0,
  ratePerUs: 0,
  burst: 1,
  windows: [],
  quota: undefined,
  concurrency: Number.POSITIVE_INFINITY,
  fromAnswer: false,
  backoff: { kind: "none", baseUs: 0, maxUs: 0, jitter: 0 },
  cooldownUs: [60_000_000],
  maxWaitUs: Number.POSITIVE_INFINITY,
  maxQueue: Number.POSITIVE_INFINITY,
  maxHoldUs: 300_000_000,
  permitTtlUs: 30_000_000,
  adaptive: undefined,
  text: { minDelay: "", rate: "", quota: "", concurrency: "", windows: [] },
};

/** A key with such a rule, asked for by a request of the usual cost. */
export function keyOf(limits: Partial<Rule>): AskedKey {
  return { rule: ruleOf(limits), cost: ONE, slowUs: 0 };
}
