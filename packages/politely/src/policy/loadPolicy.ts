import { PolicyError } from "../errors.js";
import { jsonErrorPlace, withoutJsonPlace } from "./jsonErrorPlace.js";
import { domainLimitsShape, isDomainLimits, limitsOfDomain } from "./limitsShape.js";
import { readHostPattern } from "./names.js";
import { policyShape } from "./schema.js";
import type { DomainLimits, PolicyInput } from "./types.js";
import { isPlainObject, type ObjectShape, throwIfAny, validate } from "./validate.js";

/** A file of per-domain limits. */
interface DomainsFile {
  readonly default_config?: DomainLimits;
  readonly domains?: Readonly<Record<string, DomainLimits>>;
}

const domainsShape: ObjectShape = {
  kind: "object",
  name: "domainsFile",
  fields: {
    version: { kind: "choice", options: ["1.0"] },
    default_config: domainLimitsShape,
    domains: { kind: "record", of: domainLimitsShape, keys: { what: "domain", read: readHostPattern, pattern: "" } },
  },
  required: ["version"],
};

/**
 * Reads a policy from JSON text, or from an object that came from such text.
 *
 * Three forms are taken: that of `PolicyInput`, a file of per-domain limits with `version`, `default_config` and `domains`, and one such
 * entry, `requests_per_second` and `burst_capacity`, which becomes the default.
 * Throws a `PolicyError` that lists every problem with its path. The result is a copy: changing the object later changes nothing.
 */
export function loadPolicy(text: string | object): PolicyInput {
  const value: unknown = typeof text === "string" ? parseJson(text) : text;
  const [shape, read] = formOf(value);
  throwIfAny(validate(shape, value, { allowFunctions: false }));
  return read(value);
}

/** Which of the forms a value has, and how a valid one becomes a policy. */
function formOf(value: unknown): readonly [ObjectShape, (value: unknown) => PolicyInput] {
  const has = (...names: readonly string[]): boolean =>
    isPlainObject(value) && names.some((name) => Object.hasOwn(value, name));
  if (has("default", "hosts", "global", "scopes")) return [policyShape, policyOf];
  if (has("version", "default_config", "domains")) return [domainsShape, policyOfDomains];
  if (isDomainLimits(value)) return [domainLimitsShape, () => ({ default: limitsOfDomain(value) })];
  return [policyShape, policyOf];
}

function policyOf(value: unknown): PolicyInput {
  const { $schema: _, ...policy } = copy(value) as PolicyInput & { readonly $schema?: string };
  return policy;
}

/** Each entry is a token bucket. */
function policyOfDomains(value: unknown): PolicyInput {
  const { default_config: fallback, domains = {} } = value as DomainsFile;
  const hosts = Object.entries(domains).map(([domain, entry]) => [domain, limitsOfDomain(entry)] as const);
  return { ...(fallback === undefined ? {} : { default: limitsOfDomain(fallback) }), hosts: Object.fromEntries(hosts) };
}

/** Copies a value that was found valid, and therefore is not deep. `Object.fromEntries` sets own fields only, `__proto__` included. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (!isPlainObject(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, copy(field)]));
}

function parseJson(text: string): unknown {
  // Editors on some systems begin a file with a byte order mark.
  const json = text.startsWith("\uFEFF") ? text.slice(1) : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    const { line, column } = jsonErrorPlace(json);
    const reason = withoutJsonPlace((error instanceof Error ? error.message : String(error)).replace(/\s+/g, " "));
    throw new PolicyError([
      { path: "", message: `must be JSON, and stops being it at line ${line}, column ${column}: ${reason}` },
    ]);
  }
}
