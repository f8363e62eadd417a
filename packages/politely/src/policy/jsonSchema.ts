import { maxDurationUs } from "../core/rule.js";
import { durationPattern } from "./duration.js";
import { ratePattern } from "./rate.js";
import { policyShape } from "./schema.js";
import type { DurationShape, NumberShape, ObjectShape, Shape } from "./shape.js";

/** A part of a JSON Schema. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Somewhere in front of a number there is a digit that is not 0. */
const aboveZero = "(?=[0.]*[1-9])";

/**
 * Writes down what a policy file looks like as a JSON Schema (draft 2020-12), for editors.
 *
 * It takes every policy file that `loadPolicy` takes. Contradictions between fields, and names that only the machine
 * can judge (host names, time zones), are left to `loadPolicy`.
 */
export function policyJsonSchema(): JsonSchema {
  const definitions = new Map<string, JsonSchema>();
  const root = objectSchema(policyShape, definitions);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Politely policy",
    description: "Which limits apply to the requests a program sends, by host.",
    ...root,
    $defs: Object.fromEntries(definitions),
  };
}

type Definitions = Map<string, JsonSchema>;

function schemaOf(shape: Shape, definitions: Definitions): JsonSchema {
  switch (shape.kind) {
    case "flag":
      return shape.onlyTrue === true ? { const: true } : { type: "boolean" };
    case "choice":
      return { enum: shape.options };
    case "text":
      return {
        type: "string",
        maxLength: shape.maxLength,
        ...(shape.pattern === "" ? {} : { pattern: shape.pattern }),
      };
    case "number":
      return numberSchema(shape);
    case "duration":
      return define("duration", shape.allowZero === true ? "OrZero" : "", definitions, () => durationSchema(shape));
    case "rate":
      return define("rate", "", definitions, () => rateSchema(definitions));
    case "list":
      return { type: "array", items: schemaOf(shape.of, definitions), minItems: shape.min, maxItems: shape.max };
    case "record":
      return {
        type: "object",
        propertyNames: { pattern: shape.keys.pattern },
        additionalProperties: schemaOf(shape.of, definitions),
      };
    case "object":
      return shape.name === undefined
        ? objectSchema(shape, definitions)
        : define(shape.name, "", definitions, () => objectSchema(shape, definitions));
    case "either": {
      const written = shape.of.filter(({ kind }) => kind !== "function").map((one) => schemaOf(one, definitions));
      return written.length === 1 ? written[0] : { anyOf: written };
    }
    case "function":
      return { not: {} };
  }
}

function define(name: string, suffix: string, definitions: Definitions, make: () => JsonSchema): JsonSchema {
  const key = name + suffix;
  if (!definitions.has(key)) definitions.set(key, make());
  return { $ref: `#/$defs/${key}` };
}

function objectSchema(shape: ObjectShape, definitions: Definitions): JsonSchema {
  const fields = Object.entries(shape.fields);
  const required = fields.filter(([, field]) => field.isRequired === true).map(([name]) => name);
  const needs = fields.flatMap(([name, field]) => (field.needs === undefined ? [] : [[name, [field.needs]] as const]));
  return {
    type: "object",
    properties: Object.fromEntries(
      fields.map(([name, field]) => [name, { description: field.about, ...schemaOf(field.shape, definitions) }]),
    ),
    ...(required.length === 0 ? {} : { required }),
    ...(needs.length === 0 ? {} : { dependentRequired: Object.fromEntries(needs) }),
    additionalProperties: false,
  };
}

function numberSchema(shape: NumberShape): JsonSchema {
  const lower = shape.isMinExcluded === true ? "exclusiveMinimum" : "minimum";
  return { type: shape.isWhole ? "integer" : "number", [lower]: shape.min, maximum: shape.max };
}

function durationSchema(shape: DurationShape): JsonSchema {
  const isZeroFine = shape.allowZero === true;
  return {
    description:
      'A length of time: milliseconds as a number, or text with a unit (ms, s, m, min, h, d) such as "1.5s".',
    anyOf: [
      { type: "number", [isZeroFine ? "minimum" : "exclusiveMinimum"]: 0, maximum: maxDurationUs / 1000 },
      { type: "string", pattern: `^${isZeroFine ? "" : aboveZero}${durationPattern}$` },
    ],
  };
}

function rateSchema(definitions: Definitions): JsonSchema {
  return {
    description: 'A count per time: "60/min", "1/3s", "0.5/s", or the same as an object.',
    anyOf: [
      { type: "string", pattern: `^${aboveZero}${ratePattern.replace("/ ?(", `/ ?(${aboveZero}`)}$` },
      {
        type: "object",
        properties: {
          count: { type: "number", exclusiveMinimum: 0 },
          per: schemaOf({ kind: "duration" }, definitions),
        },
        required: ["count", "per"],
        additionalProperties: false,
      },
    ],
  };
}
