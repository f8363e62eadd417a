import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { policyJsonSchema } from "../../src/policy/jsonSchema.js";
import { policyShape } from "../../src/policy/schema.js";
import { validate } from "../../src/policy/validate.js";

const isFineForEditors = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(policyJsonSchema());
const isFineForUs = (policy: unknown): boolean => validate(policyShape, policy, { allowFunctions: false }).length === 0;

describe("the JSON Schema", () => {
  it("is the one in the package; run scripts/write-schema.mjs after a build to renew it", () => {
    const file = new URL("../../schema/policy.schema.json", import.meta.url);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(policyJsonSchema());
  });

  it.each([
    {},
    { $schema: "./policy.schema.json", default: { rate: "1/s" } },
    { default: { rate: { count: 0.5, per: "1s" }, burst: 5, window: ["60/min", "1/3s"], minDelay: 0 } },
    { default: { quota: { count: 5, per: "day", timeZone: "Asia/Tokyo" }, cooldown: ["10s", 500], backoff: "none" } },
    { default: { backoff: { kind: "linear", base: "1s", max: "2 min", jitter: 0.5 }, adaptive: { max: "1/s" } } },
    { hosts: { "*.x.org": { intents: { search: { window: "10/min" } } }, "bücher.example": {}, "[::1]:3000": {} } },
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
    { default: { window: [] } },
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
});
