import { describe, expect, it } from "vitest";
import { parseRateLimit, type RateLimit, type RateLimitOptions } from "../../../src/http/headers/index.js";
import suite from "../../fixtures/ratelimit-headers.json" with { type: "json" };

interface Sample {
  readonly name: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly nowIso: string;
  readonly expect: Readonly<Partial<Record<keyof RateLimit, number | null>>>;
  readonly tier: string;
  readonly options?: RateLimitOptions;
  readonly policies?: readonly unknown[];
  readonly buckets?: readonly unknown[];
}

const samples = suite as unknown as readonly Sample[];

describe("parseRateLimit, on the samples", () => {
  it.each(samples)("reads $name ($tier)", (sample) => {
    const lines = Object.entries(sample.headers).flatMap(([name, value]) =>
      [value].flat().map((line): [string, string] => [name, line]),
    );
    const lowerCase = Object.fromEntries(
      Object.entries(sample.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const bytes = lines.flat().map((text) => new TextEncoder().encode(text));
    for (const headers of [sample.headers, lowerCase, new Headers(lines), lines, lines.flat(), bytes]) {
      const result = parseRateLimit(headers, Date.parse(sample.nowIso), sample.options);
      const keys = Object.keys(sample.expect) as (keyof RateLimit)[];
      expect(Object.fromEntries(keys.map((key) => [key, result[key] ?? null]))).toEqual(sample.expect);
      if (sample.policies !== undefined) expect(result.policies).toEqual(sample.policies);
      if (sample.buckets !== undefined) expect(result.buckets).toEqual(sample.buckets);
    }
  });
});
