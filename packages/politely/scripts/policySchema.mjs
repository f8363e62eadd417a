import { readFileSync } from "node:fs";

/**
 * What the JSON Schema is made of: the definition that checks policies, and how texts are read.
 *
 * @typedef {object} Definition
 * @property {import("../dist/policy/validate.js").ObjectShape} policyShape
 * @property {string} durationPattern
 * @property {string} ratePattern
 * @property {number} maxDurationUs
 */

/** @typedef {import("../dist/policy/validate.js").Shape} Shape */
/** @typedef {Record<string, unknown>} JsonSchema */

/** Somewhere in front of a number there is a digit that is not 0. */
const aboveZero = "(?=[0.]*[1-9])";

/** What editors and the policy reference say about each field, by its object. */
const abouts = new Map(
  readFileSync(new URL("policyFields.txt", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => /** @type {[string, string]} */ (line.split(/: (.*)/s, 2))),
);

/**
 * Writes down what a policy file looks like as a JSON Schema (draft 2020-12), for editors.
 *
 * It takes every policy file that `loadPolicy` takes. Contradictions between fields, and names that only the machine
 * can judge (host names, time zones), are left to `loadPolicy`.
 *
 * @param {Definition} definition
 * @returns {JsonSchema}
 */
export function policyJsonSchema({ policyShape, durationPattern, ratePattern, maxDurationUs }) {
  /** Parts that are used in several places. @type {Record<string, JsonSchema>} */
  const $defs = {};

  /**
   * @param {string} name
   * @param {() => JsonSchema} make
   */
  function define(name, make) {
    if (!(name in $defs)) {
      const part = make();
      $defs[name] = part;
    }
    return { $ref: `#/$defs/${name}` };
  }

  /**
   * @param {Shape} shape
   * @returns {JsonSchema}
   */
  function schemaOf(shape) {
    switch (shape.kind) {
      case "flag":
        return shape.onlyTrue === true ? { const: true } : { type: "boolean" };
      case "choice":
        return { enum: shape.options };
      case "text": {
        const { maxLength, pattern } = shape;
        return { type: "string", maxLength, ...(pattern === "" ? {} : { pattern }) };
      }
      case "number": {
        const { isWhole, min, max } = shape;
        return { type: isWhole ? "integer" : "number", minimum: min, maximum: max };
      }
      case "duration": {
        const isZeroFine = shape.allowZero === true;
        return define(isZeroFine ? "durationOrZero" : "duration", () => durationSchema(isZeroFine));
      }
      case "rate":
        return define("rate", rateSchema);
      case "list":
        return { type: "array", items: schemaOf(shape.of), minItems: shape.min, maxItems: shape.max };
      case "record": {
        const { pattern } = shape.keys;
        return { type: "object", propertyNames: { pattern }, additionalProperties: schemaOf(shape.of) };
      }
      case "object":
        return ["limits", "hostLimits"].includes(shape.name)
          ? define(shape.name, () => objectSchema(shape))
          : objectSchema(shape);
      case "either": {
        // A file cannot hold a function.
        const written = shape.of.filter(({ kind }) => kind !== "function").map(schemaOf);
        return written.length === 1 ? (written[0] ?? {}) : { anyOf: written };
      }
      case "function":
        return { not: {} };
    }
  }

  /** @param {import("../dist/policy/validate.js").ObjectShape} shape */
  function objectSchema({ name, fields, required = [], needs = {} }) {
    const properties = Object.entries(fields).map(([field, shape]) => {
      const description = abouts.get(`${name}.${field}`) ?? abouts.get(`limits.${field}`);
      return [field, { description, ...schemaOf(shape) }];
    });
    const dependentRequired = Object.fromEntries(Object.entries(needs).map(([field, other]) => [field, [other]]));
    return {
      type: "object",
      properties: Object.fromEntries(properties),
      ...(required.length === 0 ? {} : { required }),
      ...(Object.keys(needs).length === 0 ? {} : { dependentRequired }),
      additionalProperties: false,
    };
  }

  /** @param {boolean} isZeroFine */
  function durationSchema(isZeroFine) {
    return {
      description:
        'A length of time: milliseconds as a number, or text with a unit (ms, s, m, min, h, d) such as "1.5s".',
      anyOf: [
        { type: "number", [isZeroFine ? "minimum" : "exclusiveMinimum"]: 0, maximum: maxDurationUs / 1000 },
        { type: "string", pattern: `^${isZeroFine ? "" : aboveZero}${durationPattern}$` },
      ],
    };
  }

  function rateSchema() {
    return {
      description: 'A count per time: "60/min", "1/3s", "0.5/s", or the same as an object.',
      anyOf: [
        { type: "string", pattern: `^${aboveZero}${ratePattern.replace("/ ?(", `/ ?(${aboveZero}`)}$` },
        {
          type: "object",
          properties: { count: { type: "number", exclusiveMinimum: 0 }, per: schemaOf({ kind: "duration" }) },
          required: ["count", "per"],
          additionalProperties: false,
        },
      ],
    };
  }

  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Politely policy",
    description: "Which limits apply to the requests a program sends, by host.",
    ...objectSchema(policyShape),
    $defs,
  };
}
