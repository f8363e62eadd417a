import { anyTime, anyWait, flag, limitsShape, part } from "./limitsShape.js";
import { controlCharacters, maxNameLength, readHostPattern, readName, readScope, reservedScopes } from "./names.js";
import { collector, sites } from "./presets/sites.js";
import type { KeyShape, ObjectShape, Shape, TextShape } from "./validate.js";

const headerText: TextShape = {
  kind: "text",
  what: "a text of one line, 1 to 1000 characters, all of them in Latin-1 (a header carries no others)",
  maxLength: 1_000,
  pattern: "^[\\u0020-\\u007e\\u00a0-\\u00ff]+$",
};

const method: TextShape = {
  kind: "text",
  what: 'an HTTP method such as "GET"',
  maxLength: 32,
  pattern: "^[A-Za-z-]+$",
};

const hostKeys: KeyShape = { what: "host", read: readHostPattern, pattern: "^(\\*\\.)?[^*\\s/?#\\\\@]+$" };
const intentKeys: KeyShape = {
  what: "intent",
  read: readName,
  pattern: `^[^${controlCharacters}]{1,${maxNameLength}}$`,
};
const scopeKeys: KeyShape = {
  what: "scope",
  read: readScope,
  pattern: `^(?!(${reservedScopes.join("|")})?$)(?!.{${maxNameLength + 1}})[^*${controlCharacters}]*\\*?$`,
};

const hostLimits: ObjectShape = {
  ...limitsShape,
  name: "hostLimits",
  fields: { ...limitsShape.fields, intents: { kind: "record", of: limitsShape, keys: intentKeys } },
};

const robots: ObjectShape = { kind: "object", name: "robots", fields: { userAgent: headerText, maxAge: anyTime } };

const budget: ObjectShape = {
  kind: "object",
  name: "budget",
  fields: {
    share: { kind: "number", isWhole: false, min: 0, max: 100 },
    perMinute: { kind: "number", isWhole: false, min: 0, max: 1_000_000 },
  },
};

const retry: ObjectShape = {
  kind: "object",
  name: "retry",
  fields: {
    attempts: { kind: "number", isWhole: true, min: 1, max: 100 },
    methods: { kind: "list", of: method, min: 1, max: 32 },
    maxWait: anyWait,
    delay: anyTime,
    jitter: part,
    budget,
  },
  required: ["attempts"],
};

const http: ObjectShape = {
  kind: "object",
  name: "http",
  fields: {
    userAgent: headerText,
    contact: headerText,
    robots: { kind: "either", of: [flag, robots] },
    retry,
    maxCrawlDelay: anyTime,
    refusal: { kind: "choice", options: ["error", "response"] },
  },
};

const presetName: Shape = {
  kind: "choice",
  options: [...sites.map(({ id }) => id), collector.id],
  what: "the name of a preset",
  where: "politely/presets has the list",
};

const onlyTrue: Shape = { kind: "flag", onlyTrue: true };

/** What a policy looks like: the one definition behind validation and the JSON Schema. */
export const policyShape: ObjectShape = {
  kind: "object",
  name: "policy",
  inner: "default",
  fields: {
    $schema: { kind: "text", what: "the address of a JSON Schema", maxLength: 2_048, pattern: "" },
    default: limitsShape,
    hosts: { kind: "record", of: hostLimits, keys: hostKeys },
    global: limitsShape,
    scopes: { kind: "record", of: limitsShape, keys: scopeKeys },
    groupBy: { kind: "either", of: [{ kind: "choice", options: ["host", "domain"] }, { kind: "function" }] },
    localhost: { kind: "choice", options: ["unlimited", "limited"] },
    presets: { kind: "either", of: [onlyTrue, { kind: "list", of: presetName, min: 0, max: 1_000 }] },
    http,
  },
};
