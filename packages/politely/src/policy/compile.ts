import type { Rule } from "../core/rule.js";
import { PolicyError } from "../errors.js";
import { throwIfAny } from "./compileKey.js";
import { compileRule, compileSharedRule, offRule } from "./compileRule.js";
import { findGrouping, type Grouping } from "./groupings.js";
import { isLocalhost, plainHostEnd, readHost, withoutPort } from "./host.js";
import { addPattern, createPatternTable, findPattern, type PatternTable, readHostPattern } from "./hostPattern.js";
import { compileHttp } from "./httpRules.js";
import { collector, findPreset, type Preset, presets } from "./presets/index.js";
import { unwrap } from "./reading.js";
import { policyShape } from "./schema.js";
import { createResolver } from "./target.js";
import type { CompiledPolicy, HostLimits, HostRule, Limits, PolicyInput } from "./types.js";
import { validate } from "./validate.js";
import { warningsOfPolicy } from "./warningsOfPolicy.js";

const builtInDefault: Limits = { rate: "1/s" };

const exemptRule: HostRule = { rule: offRule, origin: "localhost", intents: new Map(), exempt: true };

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

  const own = ownTable(input);
  const known = presetTable(input);
  const fallback = defaultRule(input);
  const isLocalhostExempt = input.localhost !== "limited";
  const portKeys = new Set([...own.exact.keys()].filter((key) => withoutPort(key) !== key));
  const groupBy = groupingOf(input.groupBy);
  const beyondOwn = (name: string, host: string, key: string): HostRule =>
    findPattern(known, name, host) ??
    // By the key as it is: a group named by a number such as 2130706433 must not pass for the address 127.0.0.1.
    (isLocalhostExempt && isLocalhost(withoutPort(key)) ? exemptRule : fallback);

  const policy: CompiledPolicy = {
    hostRule(key) {
      const name = groupBy === undefined ? key : comparedName(key);
      const host = withoutPort(name);
      return findPattern(own, name, host) ?? beyondOwn(name, host, key);
    },
    overflow: fallback,
    scopeRule: scopeLookup(input),
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
    together: togetherIn(input, own),
    http: compileHttp(input.http),
    contactWantedBy(key) {
      const name = groupBy === undefined ? key : comparedName(key);
      return findPattern(known, name, withoutPort(name))?.contactWantedBy;
    },
    warnings: warningsOfPolicy(input, (text) => {
      const { name } = unwrap(readHostPattern(text), "host");
      return beyondOwn(name, withoutPort(name), name);
    }),
  };
  return policy;
}

function groupingOf(groupBy: PolicyInput["groupBy"]): Grouping | undefined {
  if (typeof groupBy === "function") return groupBy;
  if (groupBy !== "domain") return undefined;
  const grouping = findGrouping(groupBy);
  if (grouping !== undefined) return grouping;
  const message = 'is "domain", which needs the list of public suffixes; add import "politely/domains" to the program';
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

function ownTable(input: PolicyInput): PatternTable<HostRule> {
  const table = createPatternTable<HostRule>();
  for (const [text, limits] of entriesOf(input.hosts)) {
    const pattern = unwrap(readHostPattern(text), "host");
    addPattern(table, pattern, compileHostRule(limits, `hosts.${pattern.name}`));
  }
  return table;
}

/** A host's rule from a preset, and which preset wants to know how to reach the caller. */
type PresetRule = HostRule & { readonly contactWantedBy: string | undefined };

function presetTable(input: PolicyInput): PatternTable<PresetRule> {
  const table = createPatternTable<PresetRule>();
  for (const preset of chosenPresets(input.presets)) {
    const { id, hosts, limits, requiresContact } = preset;
    const contactWantedBy = requiresContact ? id : undefined;
    const scopes = preset.countsTogether === true ? [presetScope(preset)] : undefined;
    const rule = { ...compileHostRule(limits, `presets.${id}`), contactWantedBy, scopes };
    for (const host of hosts) addPattern(table, unwrap(readHostPattern(host), "host"), rule);
  }
  if (namesCollector(input)) {
    for (const [text, limits] of entriesOf(collector.policy.hosts)) {
      const rule = { ...compileHostRule(limits, `presets.${collector.id}`), contactWantedBy: undefined };
      addPattern(table, unwrap(readHostPattern(text), "host"), rule);
    }
  }
  return table;
}

function chosenPresets(names: PolicyInput["presets"]): readonly Preset[] {
  if (names === undefined) return [];
  if (names === true) return presets.filter(({ confidence }) => confidence !== "low");
  return names.flatMap((name) => findPreset(name) ?? []);
}

function namesCollector(input: PolicyInput): boolean {
  return Array.isArray(input.presets) && input.presets.includes(collector.id);
}

function defaultRule(input: PolicyInput): HostRule {
  if (input.default !== undefined) return compileHostRule(input.default, "default");
  if (namesCollector(input))
    return compileHostRule(collector.policy.default ?? builtInDefault, `presets.${collector.id}`);
  return compileHostRule(builtInDefault, "default");
}

function compileHostRule(limits: HostLimits, origin: string): HostRule {
  const rule = compileRule(limits);
  // A host that is turned off is off for every intent.
  const intents = rule.enabled ? entriesOf(limits.intents) : [];
  return {
    rule,
    origin,
    intents: new Map(intents.map(([name, intentLimits]) => [name, compileSharedRule(intentLimits)])),
    exempt: false,
  };
}

/** The hosts that presets count together, but for those with an entry of their own. */
function togetherIn(input: PolicyInput, own: PatternTable<HostRule>): ReadonlyMap<string, string> {
  const together = new Map<string, string>();
  for (const preset of chosenPresets(input.presets)) {
    if (preset.countsTogether !== true) continue;
    for (const host of preset.hosts)
      if (findPattern(own, host, host) === undefined) together.set(host, presetScope(preset));
  }
  return together;
}

/** The scope of all hosts of a preset together. */
function presetScope({ id }: Preset): string {
  return `preset:${id}`;
}

function scopeLookup({ scopes, presets: names }: PolicyInput): (name: string) => Rule | undefined {
  const exact = new Map<string, Rule>();
  const beginnings: { readonly text: string; readonly rule: Rule }[] = [];
  for (const preset of chosenPresets(names)) {
    if (preset.countsTogether === true) exact.set(presetScope(preset), compileSharedRule(preset.limits));
  }
  for (const [name, limits] of entriesOf(scopes)) {
    const rule = compileSharedRule(limits);
    if (name.endsWith("*")) beginnings.push({ text: name.slice(0, -1), rule });
    else exact.set(name, rule);
  }
  beginnings.sort((one, other) => other.text.length - one.text.length);
  return (name) => exact.get(name) ?? beginnings.find(({ text }) => name.startsWith(text))?.rule;
}

function entriesOf<Value>(record: Readonly<Record<string, Value>> | undefined): readonly [string, Value][] {
  return record === undefined ? [] : Object.entries(record);
}
