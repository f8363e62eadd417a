import type { Limits, PolicyInput } from "politely";
import { collector, type PolicyPreset, type Preset, presets } from "politely/presets";
import type { ParsedFile } from "../policy/inspectPolicy.js";
import type { Position } from "../policy/place.js";
import { pathInFile } from "./domainsFile.js";
import { type FoundRule, type RuleOfTarget, ruleFinder } from "./findRule.js";
import { hostWords, limitWords, standing } from "./limitWords.js";

/** Limits as data and in words. */
export interface ToldLimits {
  readonly limits: Limits;
  readonly words: readonly string[];
}

/** What limits a host, and which rule says so. */
export interface HostExplanation {
  /** As it was asked for. */
  readonly host: string;
  /** What is counted together: the host, or its group. */
  readonly key: string;
  readonly rule: {
    readonly kind: FoundRule["kind"];
    /** The entry of the policy: `hosts["*.x.org"]`, `default`. Absent where none is written. */
    readonly path?: string;
    /** Where that entry stands. */
    readonly position?: Position;
    /** Which of the preset's hosts fits; absent where it is the default of a whole policy. */
    readonly presetHost?: string;
    readonly preset?: PresetFacts;
    /** The whole rule in a sentence. */
    readonly words: string;
  };
  /** The host's own, with what stands without being said. */
  readonly limits: Limits;
  readonly words: readonly string[];
  /** Those on top for requests that name an intent, by its name. */
  readonly intents: Readonly<Record<string, ToldLimits>>;
  /** Those on top over everything together; absent where there are none, or this host is exempt. */
  readonly global?: ToldLimits;
  /** Scopes of the policy: on top too, for requests that name one. That of all hosts of a preset together is on top for each of them. */
  readonly scopes: Readonly<Record<string, ToldLimits>>;
  /** What would apply without the entry of `hosts`, in words; absent for other rules. */
  readonly instead?: string;
  /** What a person may want to know besides. */
  readonly notes: readonly string[];
}

/** Where the limits of a preset come from. */
export interface PresetFacts {
  readonly id: string;
  readonly date: string;
  readonly confidence?: Preset["confidence"];
  readonly sources: readonly string[];
  readonly notes: string;
}

/** Makes the function that explains hosts and URLs under a policy. `file` tells where entries stand. Throws a `UsageError` for what is no host. */
export function hostExplainer(policy: PolicyInput, file?: ParsedFile): (host: string) => HostExplanation {
  const find = ruleFinder(policy);
  const findAny = ruleFinder({ ...policy, hosts: {}, presets: presets.map(({ id }) => id) });
  return (host) => {
    const found = find(host);
    const { key, rule, limits } = found;
    const isExempt = rule.kind === "localhost";
    const { intents = {}, ...own } = limits;
    const global = policy.global === undefined || isExempt ? {} : { global: told(policy.global) };
    return {
      host,
      key,
      rule: { kind: rule.kind, ...factsOf(rule, file), words: ruleWords(rule, file) },
      limits: isExempt || limits.enabled === false ? own : { ...standing, ...own },
      words: isExempt ? ["no limit"] : hostWords(own),
      // A host that is turned off is off for every intent.
      intents: limits.enabled === false ? {} : toldEach(intents),
      ...global,
      scopes: isExempt ? {} : toldEach({ ...togetherScope(togetherOf(rule)), ...policy.scopes }),
      ...insteadOf(policy, rule, host, file),
      notes: notesOf(policy, found, findAny(host).rule),
    };
  };
}

/** The preset of a host that its site counts as one with others. */
function togetherOf(rule: FoundRule): Preset | undefined {
  if (rule.kind !== "preset" || !("countsTogether" in rule.preset)) return undefined;
  return rule.preset.countsTogether === true ? rule.preset : undefined;
}

function togetherScope(preset: Preset | undefined): Readonly<Record<string, Limits>> {
  return preset === undefined ? {} : { [`preset:${preset.id}`]: preset.limits };
}

/** The path of an entry of `hosts`, as problems write it. */
function hostPath(name: string): string {
  return `hosts[${JSON.stringify(name)}]`;
}

function told(limits: Limits): ToldLimits {
  return { limits, words: limitWords(limits) };
}

function toldEach(record: Readonly<Record<string, Limits>>): Readonly<Record<string, ToldLimits>> {
  return Object.fromEntries(Object.entries(record).map(([name, limits]) => [name, told(limits)]));
}

function factsOf(rule: FoundRule, file: ParsedFile | undefined): Omit<HostExplanation["rule"], "kind" | "words"> {
  switch (rule.kind) {
    case "host":
    case "wildcard":
      return placed(hostPath(rule.name), file);
    case "default":
      return placed("default", file);
    case "preset": {
      const presetHost = rule.name === undefined ? {} : { presetHost: rule.name };
      return { ...presetHost, preset: presetFacts(rule.preset) };
    }
    case "built-in":
    case "localhost":
      return {};
  }
}

function placed(
  policyPath: string,
  file: ParsedFile | undefined,
): { readonly path: string; readonly position?: Position } {
  if (file === undefined) return { path: policyPath };
  const path = pathInFile(file, policyPath);
  return { path, position: file.place(path, "") };
}

function howToApply({ presets: named }: PolicyInput, { id }: Preset): string {
  if (named === true)
    return `"presets": true leaves those of low confidence out, so copy its limits to hosts to have them`;
  return named === undefined ? `"presets": ["${id}"] applies it` : `add "${id}" to presets to apply it`;
}

function presetFacts(preset: Preset | PolicyPreset): PresetFacts {
  const { id, date, notes } = preset;
  return "sources" in preset
    ? { id, date, confidence: preset.confidence, sources: preset.sources, notes }
    : { id, date, sources: [], notes };
}

function ruleWords(rule: FoundRule, file: ParsedFile | undefined): string {
  switch (rule.kind) {
    case "host":
      return `the entry ${placed(hostPath(rule.name), file).path}`;
    case "wildcard":
      return `the entry ${placed(hostPath(rule.name), file).path}, for each subdomain on its own`;
    case "default":
      return "default, since no entry fits";
    case "built-in":
      return "no entry fits and the policy has no default, so 1 start per second";
    case "localhost":
      return "this machine, which nothing limits unless hosts names it or localhost is limited";
    case "preset": {
      const { id, date } = rule.preset;
      const confidence = "confidence" in rule.preset ? `, confidence ${rule.preset.confidence}` : "";
      const part = rule.name === undefined ? "its default" : `its entry ${rule.name}`;
      return `the preset ${id}, ${part} (of ${date}${confidence})`;
    }
  }
}

function insteadOf(
  policy: PolicyInput,
  rule: FoundRule,
  host: string,
  file: ParsedFile | undefined,
): { readonly instead?: string } {
  if (rule.kind !== "host" && rule.kind !== "wildcard") return {};
  // What fits after this one is a `*.` entry, or the host without its port.
  const others = Object.entries(policy.hosts ?? {}).filter(
    ([name]) => name !== rule.name && (name.startsWith("*.") || rule.name.includes(":")),
  );
  return { instead: ruleWords(ruleFinder({ ...policy, hosts: Object.fromEntries(others) })(host).rule, file) };
}

function notesOf(policy: PolicyInput, { rule, limits }: RuleOfTarget, known: FoundRule): readonly string[] {
  const notes: string[] = [];
  const preset = known.kind === "preset" && "sources" in known.preset ? known.preset : undefined;
  const isUnpreset = rule.kind === "default" || rule.kind === "built-in";
  if (preset !== undefined && isUnpreset) {
    notes.push(
      `the preset ${preset.id} is for this host, with confidence ${preset.confidence}; ${howToApply(policy, preset)}`,
    );
  }
  const together = togetherOf(rule);
  if (together !== undefined) {
    const hosts = together.hosts.join(", ").replace(/, (?=[^,]*$)/, " and ");
    notes.push(`the site counts ${hosts} as one: together they keep to the scope preset:${together.id}`);
  }
  if (rule.kind === "preset" && rule.preset !== collector && "requiresContact" in rule.preset) {
    if (rule.preset.requiresContact && policy.http?.contact === undefined) {
      notes.push("the site wants to know how to reach you; set http.contact");
    }
    if (rule.preset.withKey !== undefined) notes.push(`with a key: ${limitWords(rule.preset.withKey).join("; ")}`);
  }
  if (Object.keys(limits.intents ?? {}).length > 0 && limits.enabled === false) {
    notes.push("the entry is turned off, and so are its intents");
  }
  return notes;
}
