import { type HostLimits, type PolicyInput, politely } from "politely";
import { collector, findPreset, type PolicyPreset, type Preset } from "politely/presets";
import { UsageError } from "../errors.js";

/** Which rule gives a host its limits. */
export type FoundRule =
  /** An entry of `hosts`: for the host itself, or `*.` and a domain. `name` is as it is written. */
  | { readonly kind: "host" | "wildcard"; readonly name: string }
  /** A preset; `name` is the one of its hosts that fits, and absent where it is the default of a whole policy. */
  | { readonly kind: "preset"; readonly preset: Preset | PolicyPreset; readonly name?: string }
  /** The `default` of the policy, or 1 start per second where it has none. */
  | { readonly kind: "default" | "built-in" }
  /** This machine, which is not limited at all. */
  | { readonly kind: "localhost" };

/** The rule of a target, and what it limits. */
export interface RuleOfTarget {
  /** What is counted together: the host, or its group. */
  readonly key: string;
  readonly rule: FoundRule;
  /** As they are written; empty for this machine where it is not limited. */
  readonly limits: HostLimits;
}

/** What hosts get that no entry, preset or default is for. The library has the same. */
const builtIn: HostLimits = { rate: "1/s" };

/**
 * Makes the function that finds the rule of a host or URL under a policy. It asks the limiter itself, so it cannot differ from it.
 *
 * A text without a scheme but with a path counts as https. Throws a `UsageError` for what is no host.
 */
export function ruleFinder(policy: PolicyInput): (target: string) => RuleOfTarget {
  const limiter = politely(policy);
  return (given) => {
    const target = /^[^:/]+(:\d+)?\/(?!\/)/.test(given) ? `https://${given}` : given;
    const { key, origin } = explained(limiter, target, given);
    return { key, ...ruleOf(policy, origin, target) };
  };
}

function explained(limiter: ReturnType<typeof politely>, target: string, given: string) {
  try {
    return limiter.explain(target);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(`--explain takes a host or a URL, and ${JSON.stringify(given)} is none: ${error.message}`);
  }
}

function ruleOf(policy: PolicyInput, origin: string, target: string): Omit<RuleOfTarget, "key"> {
  if (origin.startsWith("hosts.")) {
    const name = writtenName(policy.hosts ?? {}, origin.slice("hosts.".length));
    const kind = name.startsWith("*.") ? "wildcard" : "host";
    return { rule: { kind, name }, limits: policy.hosts?.[name] ?? {} };
  }
  if (origin.startsWith("presets.")) return presetRule(policy, origin.slice("presets.".length), target);
  if (origin === "localhost") return { rule: { kind: "localhost" }, limits: {} };
  if (policy.default === undefined) return { rule: { kind: "built-in" }, limits: builtIn };
  return { rule: { kind: "default" }, limits: policy.default };
}

function presetRule(policy: PolicyInput, id: string, target: string): Omit<RuleOfTarget, "key"> {
  const preset = findPreset(id);
  const hosts = preset === undefined ? (collector.policy.hosts ?? {}) : entriesFor(preset);
  // The limiter says which preset it is. Which of its hosts fits is found by making them entries of their own.
  const { origin } = politely({ hosts, groupBy: policy.groupBy }).explain(target);
  const name = origin.startsWith("hosts.") ? writtenName(hosts, origin.slice("hosts.".length)) : undefined;
  if (preset !== undefined) return { rule: named({ kind: "preset", preset }, name), limits: preset.limits };
  const limits = name === undefined ? (collector.policy.default ?? builtIn) : hosts[name];
  return { rule: named({ kind: "preset", preset: collector }, name), limits };
}

function entriesFor({ hosts, limits }: Preset): Readonly<Record<string, HostLimits>> {
  return Object.fromEntries(hosts.map((host) => [host, limits]));
}

function named(rule: Extract<FoundRule, { kind: "preset" }>, name: string | undefined): FoundRule {
  return name === undefined ? rule : { ...rule, name };
}

/** Hosts that are compared as they are written: lower case, no international names, nothing that could be an address. */
const plainName = /^(\*\.)?(?!.*xn--)([a-z0-9-]+\.)*[a-z][a-z0-9-]*$/;

/** Finds the entry that the limiter calls `name`: it compares lower case and ASCII, people write what they like. */
function writtenName(hosts: Readonly<Record<string, HostLimits>>, name: string): string {
  if (Object.hasOwn(hosts, name)) return name;
  const found = Object.keys(hosts).find((written) => !plainName.test(written) && comparedName(written) === name);
  return found ?? name;
}

function comparedName(written: string): string {
  const sample = written.startsWith("*.") ? `a.${written.slice(2)}` : written;
  const { origin } = politely({ hosts: { [written]: {} } }).explain(sample);
  return origin.slice("hosts.".length);
}
