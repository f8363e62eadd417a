import { describe, expect, it } from "vitest";
import type { FieldName } from "../../../src/http/headers/fieldNames.js";
import { standardNames } from "../../../src/http/headers/fieldNames.js";
import { vendorNames } from "../../../src/http/headers/vendors.js";

const readFieldName = (name: string): FieldName | null => vendorNames.read(name);

function bucketField(name: string): Partial<FieldName> {
  return readFieldName(name) ?? {};
}

describe("the names that a reader of headers knows", () => {
  it.each<[string, Partial<FieldName>]>([
    ["RateLimit-Limit", { rank: 0, role: "limit", dimension: "" }],
    ["RateLimit-Observed", { rank: 0, role: "used" }],
    ["X-RateLimit-Remaining", { rank: 2, role: "remaining", dimension: "" }],
    ["X-Rate-Limit-Remaining", { rank: 2, role: "remaining", dimension: "" }],
    ["X-Rate-Limit", { rank: 2, role: "limit" }],
    ["X-RateLimit-Limit-Reset", { rank: 2, role: "reset", dimension: "" }],
    ["X-RateLimit-Limit-Window", { rank: 2, role: "window", dimension: "" }],
    ["X-RateLimit-Reset-After", { rank: 2, role: "resetAfter" }],
    ["X-RateLimit-Interval-Milliseconds", { rank: 2, role: "window", unitMs: 1 }],
    ["x-ratelimit-reset-tokens-minute", { rank: 1, role: "reset", dimension: "tokens-minute", windowMs: 60_000 }],
    ["x-ratelimit-reset-after-requests", { role: "resetAfter", dimension: "requests" }],
    ["X-RateLimit-UserRemaining", { rank: 1, role: "remaining", dimension: "user", isUnproven: false }],
    ["x-ratelimit-remaining-percent", { role: "remaining", dimension: "percent", isUnproven: true }],
    ["X-HubSpot-RateLimit-Daily", { rank: 1, role: "limit", dimension: "daily", windowMs: 86_400_000 }],
    ["X-FeatureRateLimit-Limit", { rank: 1, role: "limit", dimension: "feature" }],
    ["ratelimitbysize-remaining", { rank: 1, role: "remaining", dimension: "bysize" }],
    ["x-ratelimit-limit-per-day", { role: "limit", dimension: "day", windowMs: 86_400_000 }],
    ["x-ms-ratelimit-remaining-tenant-reads", { role: "remaining", dimension: "tenant-reads" }],
  ])("understands %s", (name, expected) => {
    expect(bucketField(name)).toMatchObject(expected);
    expect(bucketField(name.toUpperCase())).toMatchObject(expected);
  });

  it("gives the fields of one bucket one key, wherever the role stands", () => {
    const { key } = bucketField("x-ratelimit-limit-requests");
    expect(key).toBeDefined();
    for (const name of ["x-ratelimit-requests-remaining", "X-Rate-Limit-Reset-Requests"]) {
      expect(bucketField(name).key).toBe(key);
    }
    expect(bucketField("x-ratelimit-limit-tokens").key).not.toBe(key);
    expect(bucketField("x-acme-ratelimit-limit-requests").key).not.toBe(key);
  });

  it.each([
    "",
    "content-type",
    "x-rate",
    "x-limit",
    "x-ratelimit-policy",
    "x-generate-limit",
    "ratelimit-name",
    "x-quota",
  ])("has no meaning for %j", (name) => {
    expect(readFieldName(name)).toBeNull();
  });

  it("has no meaning for a name beyond 96 characters", () => {
    const name = (length: number): string => `x-${"a".repeat(length - 18)}-ratelimit-limit`;
    expect(name(96)).toHaveLength(96);
    expect(bucketField(name(96)).role).toBe("limit");
    expect(readFieldName(name(97))).toBeNull();
  });

  it("understands a name after ten thousand others as before", () => {
    const before = readFieldName("x-ratelimit-limit");
    for (let i = 0; i < 10_000; i++) readFieldName(`x-ratelimit-limit-${i}`);
    expect(readFieldName("x-ratelimit-limit")).toEqual(before);
  });

  it.each<[string, boolean]>([
    ["x-ratelimit-remaining", true],
    ["x-ratelimit-remaining-requests", true],
    ["x-ratelimit-remaining-requests-day", true],
    ["x-ratelimit-remaining-minute", true],
    ["x-hubspot-ratelimit-daily-remaining", true],
    ["x-shopify-shop-api-call-limit", true],
    ["x-ratelimit-remaining-tokens", false],
    ["x-ratelimit-remaining-tokens-minute", false],
    ["anthropic-ratelimit-input-tokens-remaining", false],
    ["x-ratelimit-complexity-remaining", false],
    ["x-ratelimit-remaining-search", false],
    ["x-ratelimit-remaining-member", false],
    ["x-ms-ratelimit-remaining-subscription-reads", false],
  ])("say whether the requests of a host are counted: %s, %j", (name, isOfHost) => {
    expect(bucketField(name).isOfHost).toBe(isOfHost);
  });

  it.each<[string, boolean]>([
    ["Retry-After", true],
    ["RateLimit", true],
    ["RateLimit-Policy", true],
    ["RateLimit-Remaining", true],
    ["X-RateLimit-Remaining", true],
    ["X-Rate-Limit-Reset", true],
    ["X-RateLimit-Remaining-Requests", true],
    ["retry-after-ms", false],
    ["X-Retry-After", false],
    ["X-HubSpot-RateLimit-Remaining", false],
    ["X-Shopify-Shop-Api-Call-Limit", false],
    ["X-Rl", false],
  ])("are those of the standards for a program without the vendors' table: %s, %j", (name, isKnown) => {
    expect(standardNames.read(name) !== null).toBe(isKnown);
    expect(readFieldName(name)).not.toBeNull();
  });
});
