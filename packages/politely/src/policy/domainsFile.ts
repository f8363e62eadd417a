import type { PolicyProblem } from "../errors.js";
import { bucketTooLarge } from "./contradictions.js";
import { maxUnits, readRate, readRefill } from "./rate.js";
import { readHostName } from "./schema.js";
import type { Check, ObjectShape } from "./shape.js";
import type { Limits, PolicyInput } from "./types.js";
import { fieldPath, isPlainObject, validate } from "./validate.js";

interface DomainLimits {
  readonly requests_per_second: number;
  readonly burst_capacity: number;
}

interface DomainsFile {
  readonly default_config?: DomainLimits;
  readonly domains?: Readonly<Record<string, DomainLimits>>;
}

const rateOf = (entry: Readonly<Record<string, unknown>>): unknown => ({ count: entry.requests_per_second, per: "1s" });

const rateUncountable: Check = (entry, path, report) => {
  const rate = readRate(rateOf(entry));
  const refill = rate.ok ? readRefill(rate.value) : rate;
  if (rate.ok && !refill.ok) report(fieldPath(path, "requests_per_second"), refill.problem);
};

const domainShape: ObjectShape = {
  kind: "object",
  fields: {
    requests_per_second: {
      shape: { kind: "number", isWhole: false, min: 0, isMinExcluded: true, max: maxUnits },
      isRequired: true,
      about: "Refill of the bucket; above 0.",
    },
    burst_capacity: {
      shape: { kind: "number", isWhole: true, min: 1, max: maxUnits },
      isRequired: true,
      about: "Units the bucket holds; at least 1.",
    },
  },
  checks: [rateUncountable, bucketTooLarge({ burst: "burst_capacity", rateOf })],
};

const fileShape: ObjectShape = {
  kind: "object",
  fields: {
    version: { shape: { kind: "choice", options: ["1.0"] }, isRequired: true, about: "The version of the format." },
    default_config: { shape: domainShape, about: "Domains that are not named." },
    domains: {
      shape: { kind: "record", of: domainShape, keys: { what: "domain", read: readHostName, pattern: "" } },
      about: "By domain.",
    },
  },
};

/** Tells the file of per-domain limits (`version`, `default_config`, `domains`) from a policy. */
export function isDomainsFile(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  const has = (name: string): boolean => Object.hasOwn(value, name);
  return ["version", "default_config", "domains"].some(has) && !["default", "hosts", "global", "scopes"].some(has);
}

/** Lists everything that is wrong with a file of per-domain limits. */
export function problemsOfDomainsFile(value: unknown): readonly PolicyProblem[] {
  return validate(fileShape, value, { allowFunctions: false });
}

/** Turns a valid file of per-domain limits into a policy: each entry is a token bucket. */
export function policyOfDomainsFile(value: unknown): PolicyInput {
  const file = value as DomainsFile;
  const hosts = Object.entries(file.domains ?? {}).map(([domain, entry]) => [domain, limitsOf(entry)] as const);
  return {
    ...(file.default_config === undefined ? {} : { default: limitsOf(file.default_config) }),
    hosts: Object.fromEntries(hosts),
  };
}

function limitsOf(entry: DomainLimits): Limits {
  return { rate: { count: entry.requests_per_second, per: "1s" }, burst: entry.burst_capacity };
}
