import { describe, expect, it } from "vitest";
import { loadPolicy, PolicyError, politely } from "../../src/index.js";

describe('a policy file that says groupBy "domain"', () => {
  it("is fine to load, says what it needs when used, and groups once that is there", async () => {
    const policy = loadPolicy('{ "groupBy": "domain", "default": { "window": "2/h" } }');
    expect(() => politely(policy)).toThrow(PolicyError);
    expect(() => politely(policy)).toThrow('import "politely/domains"');

    await import("../../src/http/domains/index.js");
    const polite = politely(policy);
    for (const host of ["a.example.co.uk", "b.example.co.uk"]) polite.tryAcquire(`https://${host}/`)?.release();
    expect(polite.check("https://c.example.co.uk/").proceed).toBe(false);
    expect(polite.check("https://example.org/").proceed).toBe(true);
    expect(polite.stats("https://a.example.co.uk/")).toMatchObject({ host: "example.co.uk", totalRequests: 2 });
  });
});
