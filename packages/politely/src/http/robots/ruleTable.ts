import { matchesPattern, type Pattern } from "./pattern.js";
import { Substrings } from "./substrings.js";

/** When so many patterns with `*` have been compared with a path one by one, it pays to look at the path more closely. */
const manyWildcards = 256;

/** One Allow or Disallow line. */
export interface Rule {
  readonly isAllow: boolean;
  readonly pattern: Pattern;
  /** Where it stands, from 1. */
  readonly line: number;
  /** The line as it is written, without its comment, one character for each octet. */
  readonly text: string;
}

/** The rules of one agent, in the order in which they are asked. */
export interface RuleTable {
  /** Patterns without `*` and `$`, sorted by their text. */
  readonly prefixes: readonly Rule[];
  /** For each prefix, the place of the longest other one that it begins with; -1 for none. */
  readonly parents: Int32Array;
  /** For each prefix, which of its own rule and those of all that it begins with decides. */
  readonly deciding: readonly Rule[];
  /** Patterns without `*` that end in `$`, by the one path they match. */
  readonly wholePaths: ReadonlyMap<string, Rule>;
  /** Patterns with `*`, the longest first; Allow before Disallow where they are equally long. */
  readonly wildcards: readonly Rule[];
}

/** Sorts rules for `findRule`. Takes n log n comparisons for n rules. Of two rules with the same pattern, Allow stays. */
export function createRuleTable(rules: readonly Rule[]): RuleTable {
  const prefixes = new Map<string, Rule>();
  const wholePaths = new Map<string, Rule>();
  const wildcards: Rule[] = [];
  for (const rule of rules) {
    const { prefix, hasWildcard, suffix } = rule.pattern;
    if (hasWildcard) wildcards.push(rule);
    else keepBetter(suffix === undefined ? prefixes : wholePaths, prefix, rule);
  }
  const sorted = [...prefixes.values()].sort((one, other) => (one.pattern.prefix < other.pattern.prefix ? -1 : 1));
  wildcards.sort(
    (one, other) => other.pattern.length - one.pattern.length || Number(other.isAllow) - Number(one.isAllow),
  );
  const parents = parentsOf(sorted);
  return { prefixes: sorted, parents, deciding: decidingOf(sorted, parents), wholePaths, wildcards };
}

/**
 * Finds the rule that decides about a normalised path: of those that match the longest, and of equally long ones an Allow.
 *
 * Undefined when none matches. Rules without `*` are found without going through all of them; with those that have one, time grows with
 * the path and with the rules, but not with the product of both.
 */
export function findRule(table: RuleTable, path: string): Rule | undefined {
  let best = longestPrefix(table, path);
  const whole = table.wholePaths.get(path);
  if (whole !== undefined && isBetter(whole, best)) best = whole;
  let pieces: Substrings | undefined;
  for (let index = 0; index < table.wildcards.length; index++) {
    const rule = table.wildcards[index];
    if (!isBetter(rule, best)) break;
    if (index === manyWildcards) pieces = new Substrings(path);
    if (matchesPattern(rule.pattern, path, pieces)) best = rule;
  }
  return best;
}

function keepBetter(byText: Map<string, Rule>, text: string, rule: Rule): void {
  if (isBetter(rule, byText.get(text))) byText.set(text, rule);
}

function isBetter(rule: Rule, best: Rule | undefined): boolean {
  if (best === undefined) return true;
  const more = rule.pattern.length - best.pattern.length;
  return more > 0 || (more === 0 && rule.isAllow && !best.isAllow);
}

/**
 * Everything that sorts between a beginning of the path and the path itself begins with that beginning. So the last prefix that does not
 * sort after the path leads, from parent to parent, to all that the path begins with, the longest first.
 */
function longestPrefix({ prefixes, parents, deciding }: RuleTable, path: string): Rule | undefined {
  let low = 0;
  let high = prefixes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (prefixes[middle].pattern.prefix <= path) low = middle + 1;
    else high = middle;
  }
  let at = low - 1;
  while (at !== -1 && !path.startsWith(prefixes[at].pattern.prefix)) at = parents[at];
  return at === -1 ? undefined : deciding[at];
}

/** A rule may be the longer one in octets although its prefix is the shorter one: `/a%27` has five, `/a'b` four. */
function decidingOf(sorted: readonly Rule[], parents: Int32Array): Rule[] {
  const deciding: Rule[] = [];
  sorted.forEach((rule, index) => {
    const outer = parents[index] === -1 ? undefined : deciding[parents[index]];
    deciding.push(outer === undefined || isBetter(rule, outer) ? rule : outer);
  });
  return deciding;
}

function parentsOf(sorted: readonly Rule[]): Int32Array {
  const parents = new Int32Array(sorted.length);
  for (let index = 0; index < sorted.length; index++) {
    let parent = index - 1;
    while (parent !== -1 && !sorted[index].pattern.prefix.startsWith(sorted[parent].pattern.prefix)) {
      parent = parents[parent];
    }
    parents[index] = parent;
  }
  return parents;
}
