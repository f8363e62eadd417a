import { describe, expect, it } from "vitest";
import { type BucketFieldName, readFieldName } from "../../../src/http/headers/fieldName.js";

function bucketField(name: string): Partial<BucketFieldName> {
  const found = readFieldName(name);
  return found?.kind === "bucket" ? found : {};
}

describe("readFieldName", () => {
  it.each<[string, Partial<BucketFieldName>]>([
    ["RateLimit-Limit", { rank: "triple", role: "limit", dimension: "" }],
    ["RateLimit-Observed", { rank: "triple", role: "used" }],
    ["X-RateLimit-Remaining", { rank: "common", role: "remaining", dimension: "" }],
    ["X-Rate-Limit-Remaining", { rank: "common", role: "remaining", dimension: "" }],
    ["X-Rate-Limit", { rank: "common", role: "limit" }],
    ["X-RateLimit-Limit-Reset", { rank: "common", role: "reset", dimension: "" }],
    ["X-RateLimit-Limit-Window", { rank: "common", role: "window", dimension: "" }],
    ["X-RateLimit-Reset-After", { rank: "common", role: "resetAfter" }],
    ["X-RateLimit-Interval-Milliseconds", { rank: "common", role: "window", unitMs: 1 }],
    [
      "x-ratelimit-reset-tokens-minute",
      { rank: "vendor", role: "reset", dimension: "tokens-minute", windowMs: 60_000 },
    ],
    ["x-ratelimit-reset-after-requests", { role: "resetAfter", dimension: "requests" }],
    ["X-RateLimit-UserRemaining", { rank: "vendor", role: "remaining", dimension: "user", isUnproven: false }],
    ["x-ratelimit-remaining-percent", { role: "remaining", dimension: "percent", isUnproven: true }],
    ["X-HubSpot-RateLimit-Daily", { rank: "vendor", role: "limit", dimension: "daily", windowMs: 86_400_000 }],
    ["X-FeatureRateLimit-Limit", { rank: "vendor", role: "limit", dimension: "feature" }],
    ["ratelimitbysize-remaining", { rank: "vendor", role: "remaining", dimension: "bysize" }],
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
});
