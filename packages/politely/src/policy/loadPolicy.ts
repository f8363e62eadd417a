import { PolicyError } from "../errors.js";
import { isDomainsFile, policyOfDomainsFile, problemsOfDomainsFile } from "./domainsFile.js";
import { jsonErrorPlace, withoutJsonPlace } from "./jsonErrorPlace.js";
import { policyShape } from "./schema.js";
import type { PolicyInput } from "./types.js";
import { isPlainObject, validate } from "./validate.js";

/**
 * Reads a policy from JSON text, or from an object that came from such text.
 *
 * Two forms are taken: that of `PolicyInput`, and a file of per-domain limits with `version`, `default_config` and `domains`.
 * Throws a `PolicyError` that lists every problem with its path. The result is a copy: changing the object later changes nothing.
 */
export function loadPolicy(text: string | object): PolicyInput {
  const value: unknown = typeof text === "string" ? parseJson(text) : text;
  const isDomains = isDomainsFile(value);
  const problems = isDomains ? problemsOfDomainsFile(value) : validate(policyShape, value, { allowFunctions: false });
  if (problems.length > 0) throw new PolicyError(problems);
  return isDomains ? policyOfDomainsFile(value) : policyOf(value);
}

function policyOf(value: unknown): PolicyInput {
  const { $schema: _, ...policy } = copy(value) as PolicyInput & { readonly $schema?: string };
  return policy;
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
