import { readFileSync } from "node:fs";
import { Ajv2020, type AnySchemaObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxDurationUs } from "../../src/core/rule.js";
import { loadPolicy, PolicyError, politely } from "../../src/index.js";
import { durationPattern } from "../../src/policy/duration.js";
import { ratePattern } from "../../src/policy/rate.js";
import { policyShape } from "../../src/policy/schema.js";
import { validate } from "../../src/policy/validate.js";
import { seeded } from "../laws/seeded.js";
import { anyChangedPolicy } from "./changedPolicies.js";

// By its address: the scripts of the package are no part of this program.
const script = new URL("../../scripts/policySchema.mjs", import.meta.url).href;
const { policyJsonSchema } = (await import(script)) as { policyJsonSchema(definition: object): AnySchemaObject };
const schema = policyJsonSchema({ policyShape, durationPattern, ratePattern, maxDurationUs });

const isFineForEditors = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
const isFineForUs = (policy: unknown): boolean => validate(policyShape, policy, { allowFunctions: false }).length === 0;

describe("the JSON Schema", () => {
  it("is the one in the package; run scripts/write-schema.mjs after a build to renew it", () => {
    const file = new URL("../../schema/policy.schema.json", import.meta.url);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(schema);
  });

  it.each([
    {},
    { $schema: "./policy.schema.json", default: { rate: "1/s" } },
    { default: { rate: { count: 0.5, per: "1s" }, burst: 5, window: ["60/min", "1/3s"], minDelay: 0 } },
    { default: { quota: { count: 5, per: "day", timeZone: "Asia/Tokyo" }, cooldown: ["10s", 500], backoff: "none" } },
    { default: { backoff: { kind: "linear", base: "1s", max: "2 min", jitter: 0.5 }, adaptive: { max: "1/s" } } },
    { hosts: { "*.x.org": { intents: { search: { window: "10/min" } } }, "bücher.example": {}, "[::1]:3000": {} } },
    { default: { rate: "1/0.1s", window: "1e3/ 1e-3 d", maxHold: 36_525 * 86_400_000 } },
    { scopes: { "*": {}, [`${"a".repeat(199)}*`]: {}, hosts: {}, "global:*": {}, "globa*": {}, "rat*": {} } },
    { scopes: { "proxy:*": {}, "key:abc": {} }, global: { concurrency: 4 }, groupBy: "host", presets: true },
    { presets: ["arxiv", "collector"], localhost: "limited", http: { robots: true, userAgent: "me/1.0" } },
  ])("takes what we take: %j", (policy) => {
    expect([isFineForUs(policy), isFineForEditors(policy)]).toEqual([true, true]);
  });

  it.each([
    [],
    { zebra: 1 },
    { default: { burst: 5 } },
    { default: { rate: "fast" } },
    { default: { rate: "0/s" } },
    { default: { rate: "0.0/s" } },
    { default: { rate: { count: 5 } } },
    { default: { rate: { count: 0, per: "1s" } } },
    { default: { rate: { count: 5, per: 0 } } },
    { default: { rate: "1/0s" } },
    { default: { window: "1/0.0 min" } },
    { default: { window: [] } },
    { default: { maxHold: 36_525 * 86_400_000 + 1 } },
    { default: { minDelay: -1 } },
    { default: { minDelay: "2 sec" } },
    { default: { maxHold: "0s" } },
    { default: { concurrency: 0 } },
    { default: { concurrency: 1.5 } },
    { default: { cooldown: [] } },
    { default: { enabled: "yes" } },
    { default: { quota: { count: 5, per: "week" } } },
    { default: { backoff: { kind: "linear" } } },
    { default: { intents: {} } },
    { hosts: { "*": {} } },
    { hosts: { "a.*.b": {} } },
    { hosts: { "x.org/a": {} } },
    { scopes: { "a*b": {} } },
    { scopes: { global: {} } },
    { scopes: { "": {} } },
    { scopes: { [`${"a".repeat(200)}*`]: {} } },
    { scopes: { "a\nb": {} } },
    { scopes: { "a\u007f*": {} } },
    { hosts: { "x.org": { intents: { "a\u0000": {} } } } },
    { presets: ["nobody"] },
    { presets: false },
    { groupBy: "path" },
    { http: { userAgent: "a\nb" } },
  ])("refuses what we refuse: %j", (policy) => {
    expect([isFineForUs(policy), isFineForEditors(policy)]).toEqual([false, false]);
  });

  it("takes whatever we take, and what we refuse is told by path, rule and value", () => {
    fc.assert(
      fc.property(anyChangedPolicy, (policy) => {
        const problems = problemsOf(policy);
        if (problems.length === 0) {
          expect([policy, isFineForEditors(policy)]).toEqual([policy, true]);
          politely(loadPolicy(policy)).check("x.org");
        }
        for (const { path, message } of problems) {
          expect(path).not.toBe("");
          expect(message).toMatch(
            /^(is not a field|is missing|.*is the same )|(must|is not a rate|has no meaning).*got /s,
          );
        }
      }),
      seeded(1500),
    );
  });
});

function problemsOf(policy: object): PolicyError["problems"] {
  try {
    loadPolicy(policy);
    return [];
  } catch (error) {
    if (error instanceof PolicyError) return error.problems;
    throw error;
  }
}
