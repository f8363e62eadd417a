import type { Rule } from "../core/rule.js";
import { PolicyError, type PolicyProblem } from "../errors.js";
import { compileRule, compileSharedRule } from "./compileRule.js";
import { findGrouping, type Grouping } from "./groupings.js";
import { isLocalhost, plainHostEnd, readHost, withoutPort } from "./host.js";
import { compileHttp } from "./httpRules.js";
import { patternFinder, readHostPattern } from "./names.js";
import { collector, type Site, sites } from "./presets/sites.js";
import { unwrap } from "./reading.js";
import { policyShape } from "./schema.js";
import { createResolver } from "./target.js";
import type { CompiledPolicy, HostLimits, HostRule, PolicyInput } from "./types.js";
import { throwIfAny, validate } from "./validate.js";
import { warningsOfPolicy } from "./warningsOfPolicy.js";

const exemptRule: HostRule = { ...compileHostRule({ enabled: false }, "localhost"), exempt: true };
/** So many hosts are named in an error. */
const NAMED_MOST = 5;

type HostTable = ReadonlyMap<string, HostRule>;
/** The rows of a limiter, by their names. */
type Known = ReadonlyMap<string, unknown>;
/** A host's rule from a preset, and which preset wants to know how to reach the caller. */
type PresetRule = HostRule & { readonly contactWantedBy?: string | undefined };

/**
 * Makes a policy ready. Throws `PolicyError` listing every problem.
 *
 * A host's rule is the first of: own entry for the host, own `*.` entry (the longest), preset for the host, preset with `*.`,
 * the exemption of localhost, the default. With a `groupBy` of your own the key it returns takes the place of the host: it is
 * compared with the entries as a host name is, so that `"GroupA"` finds the entry written `GroupA` or `groupa`. Only the rule is
 * found so: `"GroupA"` and `"groupa"` stay two keys, each counted on its own. A key that is no host name has no entry.
 */
export function compilePolicy(input: PolicyInput = {}): CompiledPolicy {
  throwIfAny(validate(policyShape, input, { allowFunctions: true }));

  const own = hostTable(input.hosts, (name) => `hosts.${name}`);
  const chosen = chosenPresets(input.presets);
  const hasCollector = Array.isArray(input.presets) && input.presets.includes(collector.id);
  const known = presetTable(chosen, hasCollector);
  const collected = hasCollector && input.default === undefined ? collector.policy.default : undefined;
  const fallbackOrigin = collected === undefined ? "default" : `presets.${collector.id}`;
  const fallback = compileHostRule(input.default ?? collected ?? { rate: "1/s" }, fallbackOrigin);
  const portKeys = new Set([...own.keys()].filter((key) => withoutPort(key) !== key));
  const groupBy = groupingOf(input.groupBy);
  const nameOf = (key: string): string => (groupBy === undefined ? key : comparedName(key));
  const [findOwn, findKnown] = [patternFinder(own), patternFinder(known)];
  const beyondOwn = (name: string, key: string): HostRule =>
    findKnown(name) ??
    // By the key as it is: a group named by a number such as 2130706433 must not pass for the address 127.0.0.1.
    (input.localhost !== "limited" && isLocalhost(withoutPort(key)) ? exemptRule : fallback);

  const policy: CompiledPolicy = {
    hostRule: (key) => findOwn(nameOf(key)) ?? beyondOwn(nameOf(key), key),
    overflow: fallback,
    scopeRule: scopeLookup(input.scopes, chosen),
    global: input.global === undefined ? undefined : compileSharedRule(input.global),
    resolve: createResolver({ groupBy, portKeys }),
    isEnabled(target) {
      const { key, intent = "", scopes } = policy.resolve(target);
      const { exempt, intents, rule } = policy.hostRule(key);
      const rules = [rule, policy.global, intents.get(intent), ...scopes.map((scope) => policy.scopeRule(scope))];
      return !exempt && rules.some((each) => each?.enabled === true);
    },
    hostIsKey: groupBy === undefined,
    groupBy,
    together: togetherIn(chosen, own),
    http: compileHttp(input.http),
    contactWantedBy: (key) => findKnown(nameOf(key))?.contactWantedBy,
    warnings: warningsOfPolicy(input, (text) => {
      const name = unwrap(readHostPattern(text), "host");
      return beyondOwn(name, name);
    }),
  };
  return policy;
}

/**
 * Refuses a policy that counts the hosts of a limiter together in another way than the one in force: what was counted as one key cannot be
 * told apart afterwards. Throws `PolicyError` naming the hosts concerned.
 */
export function sameCounting(before: CompiledPolicy, after: CompiledPolicy, known: Known): void {
  const problems: PolicyProblem[] = [];
  if (before.groupBy !== after.groupBy) {
    // The rows of scopes and of everything together have names that are no hosts.
    const names = [...known.keys()].filter((name) => !name.startsWith("\n"));
    const hosts = names.length === 0 ? "" : ` (known so far: ${listed(names)})`;
    const message = `must stay what it is, the very same function${hosts}; make a new limiter to group hosts in another way`;
    problems.push({ path: "groupBy", message });
  }
  const changed = changedTogether(before, after, known);
  if (changed.length > 0) {
    const message = `must not change whether ${listed(changed)} count together, as a preset says; make a new limiter for that`;
    problems.push({ path: "presets", message });
  }
  throwIfAny(problems);
}

/** The hosts of a limiter that presets count together before or after, and with others than now. */
function changedTogether(before: CompiledPolicy, after: CompiledPolicy, known: Known): readonly string[] {
  const scopeOf = (policy: CompiledPolicy, host: string): string | undefined => policy.hostRule(host).scopes?.[0];
  const patterns = [...new Set([...before.together.keys(), ...after.together.keys()])];
  const changed = patterns.filter((name) => before.together.get(name) !== after.together.get(name));
  const endings = changed.filter((name) => name.startsWith("*.")).map((name) => name.slice(1));
  const isCovered = (name: string): boolean => !name.startsWith("\n") && endings.some((end) => name.endsWith(end));
  const covered = endings.length === 0 ? [] : [...known.keys()].filter(isCovered);
  const hosts = new Set([...changed.filter((name) => known.has(name)), ...covered]);
  return [...hosts].filter((host) => scopeOf(before, host) !== scopeOf(after, host));
}

function listed(hosts: readonly string[]): string {
  const more = hosts.length - NAMED_MOST;
  return hosts.slice(0, NAMED_MOST).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function groupingOf(groupBy: PolicyInput["groupBy"]): Grouping | undefined {
  if (typeof groupBy === "function") return groupBy;
  if (groupBy !== "domain") return undefined;
  const grouping = findGrouping(groupBy);
  if (grouping !== undefined) return grouping;
  const message =
    'is "domain", which needs the list of public suffixes; run npm install tldts, and add import "politely/domains" to the program';
  throw new PolicyError([{ path: "groupBy", message }]);
}

/** Brings the key of a `groupBy` into the form that the keys of `hosts` are compared in; one that is no host name stays as it is. */
function comparedName(key: string): string {
  if (plainHostEnd(key, 0) === key.length) return key;
  const reading = readHost(key);
  if (!reading.ok) return key;
  const { host, port } = reading.value;
  return port === undefined ? host : `${host}:${port}`;
}

function presetTable(chosen: readonly Site[], hasCollector: boolean): ReadonlyMap<string, PresetRule> {
  const collected = hasCollector ? hostTable(collector.policy.hosts, () => `presets.${collector.id}`) : [];
  const table = new Map<string, PresetRule>(collected);
  for (const { id, hosts, limits, requiresContact, countsTogether } of chosen) {
    const rule: PresetRule = {
      ...compileHostRule(limits, `presets.${id}`),
      contactWantedBy: requiresContact ? id : undefined,
      scopes: countsTogether === true ? [presetScope(id)] : undefined,
    };
    for (const host of hosts) table.set(host, rule);
  }
  return table;
}

/** The rules of entries such as those of `hosts`, by the names of their patterns. */
function hostTable(hosts: PolicyInput["hosts"] = {}, originOf: (name: string) => string): HostTable {
  const rules = Object.entries(hosts).map(([text, limits]) => {
    const name = unwrap(readHostPattern(text), "host");
    return [name, compileHostRule(limits, originOf(name))] as const;
  });
  return new Map(rules);
}

function chosenPresets(names: PolicyInput["presets"] = []): readonly Site[] {
  if (names === true) return sites.filter(({ confidence }) => confidence !== "low");
  return sites.filter(({ id }) => names.includes(id));
}

function compileHostRule(limits: HostLimits, origin: string): HostRule {
  const rule = compileRule(limits);
  // A host that is turned off is off for every intent.
  const intents = rule.enabled ? Object.entries(limits.intents ?? {}) : [];
  const shared = intents.map(([name, intentLimits]) => [name, compileSharedRule(intentLimits)] as const);
  return { rule, origin, intents: new Map(shared), exempt: false };
}

/** The patterns that decide which hosts count together: those of presets, each with its scope, and those that take hosts out of one. */
function togetherIn(chosen: readonly Site[], own: HostTable): ReadonlyMap<string, string> {
  const together = new Map<string, string>();
  for (const { countsTogether, hosts, id } of chosen) {
    if (countsTogether === true) for (const host of hosts) together.set(host, presetScope(id));
  }
  for (const name of together.size === 0 ? [] : own.keys()) together.set(name, "");
  return together;
}

/** The scope of all hosts of a preset together. */
function presetScope(id: string): string {
  return `preset:${id}`;
}

function scopeLookup(scopes: PolicyInput["scopes"] = {}, chosen: readonly Site[]): (name: string) => Rule | undefined {
  const together = chosen.filter(({ countsTogether }) => countsTogether === true);
  const all = { ...Object.fromEntries(together.map(({ id, limits }) => [presetScope(id), limits])), ...scopes };
  const rules = Object.entries(all).map(([name, limits]) => [name, compileSharedRule(limits)] as const);
  const exact = new Map(rules);
  const beginnings = rules
    .filter(([name]) => name.endsWith("*"))
    .map(([name, rule]) => ({ text: name.slice(0, -1), rule }))
    .sort((one, other) => other.text.length - one.text.length);
  return (name) =>
    (name.endsWith("*") ? undefined : exact.get(name)) ?? beginnings.find(({ text }) => name.startsWith(text))?.rule;
}
