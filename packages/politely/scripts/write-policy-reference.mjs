// Writes docs/policy.md from the JSON Schema, which is itself written from the definition that checks policies.
// With --check nothing is written: the page must be there already, just as it would be made. Needs a build.
import { readFileSync, writeFileSync } from "node:fs";
import "../dist/http/domains/index.js"; // a file that says "groupBy": "domain" needs it
import { loadPolicy } from "../dist/index.js";
import { policyExample } from "./policyExample.mjs";

/**
 * The keywords of a part of the schema that this page understands.
 *
 * @typedef {object} Part
 * @property {string} [description]
 * @property {string} [type]
 * @property {string} [$ref]
 * @property {Record<string, Part>} [properties]
 * @property {string[]} [required]
 * @property {Part | false} [additionalProperties]
 * @property {Part[]} [anyOf]
 * @property {Part} [items]
 * @property {string[]} [enum]
 * @property {true} [const]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {number} [minItems]
 * @property {number} [maxItems]
 * @property {number} [maxLength]
 * @property {Record<string, Part>} [$defs]
 */

const page = new URL("../../../docs/policy.md", import.meta.url);
/** @type {Part} */
const schema = JSON.parse(readFileSync(new URL("../schema/policy.schema.json", import.meta.url), "utf8"));
loadPolicy(policyExample); // throws with every problem where an example is none
const text = reference();

if (!process.argv.includes("--check")) {
  writeFileSync(page, text);
} else if (readFileSync(page, "utf8") !== text) {
  console.error(
    "docs/policy.md is not what the schema says. Run: node packages/politely/scripts/write-policy-reference.mjs",
  );
  process.exitCode = 1;
}

function reference() {
  const hostFields = schema.$defs?.hostLimits ?? {};
  const template = readFileSync(new URL("policy.template.md", import.meta.url), "utf8");
  /** @type {Record<string, string>} */
  const tables = {
    file: table(schema, policyExample, ""),
    limits: table(hostFields, policyExample.hosts["api.example.com"], ""),
    http: table(schema.properties?.http ?? {}, policyExample.http, "http."),
  };
  return template.replace(/^\{\{(\w+)\}\}$/gm, (_, name) => tables[name] ?? fail(`there is no table ${name}`));
}

/**
 * @param {Part} part
 * @param {object} example
 * @param {string} prefix
 */
function table(part, example, prefix) {
  return [
    "| Field | Value | Default | Means | Example |",
    "|---|---|---|---|---|",
    ...rows(part, example, prefix).map(
      (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`,
    ),
  ].join("\n");
}

/**
 * A row for each field, and behind it those of the object that it may hold. The fields of `http` have a table of their own.
 *
 * @param {Part} part
 * @param {object} example
 * @param {string} prefix
 * @returns {string[][]}
 */
function rows(part, example, prefix) {
  return Object.entries(part.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const value = new Map(Object.entries(example)).get(name) ?? fail(`${path} has no example in policyExample.mjs`);
    const { means, otherwise } = words(field.description ?? fail(`${path} has no description`));
    const isRequired = part.required?.includes(name) === true;
    if (!isRequired && otherwise === undefined) fail(`the description of ${path} names no default`);
    const inner = path === "http" ? undefined : objectIn(field);
    return [
      [`\`${path}\``, valueWords(field, path), isRequired ? "required" : (otherwise ?? ""), means, shown(value)],
      ...(inner === undefined ? [] : rows(inner, value, `${path}.`)),
    ];
  });
}

/**
 * The sentence about the default, and the others.
 *
 * @param {string} description
 */
function words(description) {
  const match = /^(.*?)\s*Default:? (.*)\.$/s.exec(description);
  const means = (match?.[1] ?? description).trim();
  return { means, otherwise: match?.[2] };
}

/**
 * The object with named fields that a field may hold.
 *
 * @param {Part} part
 * @returns {Part | undefined}
 */
function objectIn(part) {
  return part.properties === undefined ? part.anyOf?.find(({ properties }) => properties !== undefined) : part;
}

/**
 * What may stand there, with its bounds.
 *
 * @param {Part} part
 * @param {string} path
 * @returns {string}
 */
function valueWords(part, path) {
  if (path === "presets") return "`true`, or a list of names (`politely presets`)";
  if (part.$ref !== undefined) return definitionWords(part.$ref.slice("#/$defs/".length));
  if (part.anyOf !== undefined) return eitherWords(part.anyOf, path);
  if (part.enum !== undefined) return part.enum.map((word) => `\`"${word}"\``).join(", ");
  if (part.const !== undefined) return "`true`";
  switch (part.type ?? "") {
    case "boolean":
      return "`true` or `false`";
    case "integer":
    case "number":
      return `${part.type === "integer" ? "whole number" : "number"}, ${count(part.minimum)} to ${count(part.maximum)}`;
    case "string":
      return `text, at most ${count(part.maxLength)} characters`;
    case "array":
      return `a list of ${count(part.minItems)} to ${count(part.maxItems)} of these: ${valueWords(part.items ?? {}, path)}`;
    case "object":
      return typeof part.additionalProperties === "object"
        ? `${definitionWords((part.additionalProperties.$ref ?? "").slice("#/$defs/".length))}, by name`
        : "an object";
    default:
      return fail(`${path} has a type that this page does not know: ${JSON.stringify(part)}`);
  }
}

/**
 * @param {readonly Part[]} parts
 * @param {string} path
 */
function eitherWords(parts, path) {
  const [first = "", ...others] = parts.map((part) => valueWords(part, path));
  const ofFirst = ` of these: ${first}`;
  return [first, ...others.map((words) => (words.endsWith(ofFirst) ? words.slice(0, -ofFirst.length) : words))].join(
    ", or ",
  );
}

/** @param {string} name */
function definitionWords(name) {
  /** @type {Record<string, string>} */
  const known = {
    duration: "[duration](#values) above 0",
    durationOrZero: "[duration](#values)",
    rate: "[rate](#values)",
    limits: "[limits](#limits)",
    hostLimits: "[limits](#limits)",
  };
  return known[name] ?? fail(`there are no words for the definition ${name}`);
}

/** @param {unknown} value */
function shown(value) {
  const json = JSON.stringify(value);
  return json.length > 80 ? "see its fields" : `\`${json}\``;
}

/** @param {number | undefined} value */
function count(value) {
  return value === undefined ? fail("a bound is missing") : value.toLocaleString("en");
}

/**
 * @param {string} what
 * @returns {never}
 */
function fail(what) {
  throw new Error(`docs/policy.md cannot be written: ${what}.`);
}
