import { describe, expect, it } from "vitest";
import { PolicyError } from "../../src/errors.js";
import { compilePolicy } from "../../src/policy/compile.js";
import { compileKeyPolicy } from "../../src/policy/compileKey.js";
import type { PolicyInput } from "../../src/policy/types.js";

const originsOf = (policy: PolicyInput, keys: readonly string[]): Readonly<Record<string, string>> => {
  const compiled = compilePolicy(policy);
  return Object.fromEntries(keys.map((key) => [key, compiled.hostRule(key).origin]));
};

describe("compilePolicy", () => {
  it("gives every host one start a second when nothing is said", () => {
    const { rule, origin, exempt } = compilePolicy().hostRule("example.com");
    expect({ origin, exempt }).toEqual({ origin: "default", exempt: false });
    expect(rule).toMatchObject({ rateCount: 1, ratePerUs: 1_000_000, burst: 1, text: { rate: "1/s" } });
  });

  it("throws every problem at once", () => {
    expect(() => compilePolicy({ default: { burst: 5 }, hosts: { "*": {} } })).toThrow(PolicyError);
    expect(() => compilePolicy({ default: { burst: 5 }, hosts: { "*": {} } })).toThrow("2 problems");
  });

  it("takes the most specific entry, and only it", () => {
    const policy: PolicyInput = {
      default: { rate: "1/s" },
      hosts: { "X.org": { concurrency: 1 }, "*.x.org": {}, "*.a.x.org": {}, "b.a.x.org": {}, "x.org:8443": {} },
    };
    const keys = [
      "x.org",
      "x.org:8443",
      "x.org:9",
      "y.x.org",
      "y.z.x.org",
      "a.x.org",
      "c.a.x.org",
      "b.a.x.org",
      "notx.org",
    ];
    expect(originsOf(policy, keys)).toEqual({
      "x.org": "hosts.x.org",
      "x.org:8443": "hosts.x.org:8443",
      "x.org:9": "hosts.x.org",
      "y.x.org": "hosts.*.x.org",
      "y.z.x.org": "hosts.*.x.org",
      "a.x.org": "hosts.*.x.org",
      "c.a.x.org": "hosts.*.a.x.org",
      "b.a.x.org": "hosts.b.a.x.org",
      "notx.org": "default",
    });
    expect(compilePolicy(policy).hostRule("x.org").rule.rateCount).toBe(0);
  });

  it("gives the same object for the same entry every time", () => {
    const policy = compilePolicy({ hosts: { "*.x.org": { rate: "1/s" } }, presets: true });
    expect(policy.hostRule("a.x.org")).toBe(policy.hostRule("b.x.org"));
    expect(policy.hostRule("one.example")).toBe(policy.hostRule("two.example"));
    expect(policy.hostRule("one.example")).toBe(policy.overflow);
    expect(policy.hostRule("data.sec.gov")).toBe(policy.hostRule("www.sec.gov"));
  });

  it("lets all own entries beat all presets", () => {
    const policy: PolicyInput = { hosts: { "*.arxiv.org": {}, "gitlab.com": {} }, presets: true };
    expect(
      originsOf(policy, ["export.arxiv.org", "arxiv.org", "gitlab.com", "de.wikipedia.org", "query.wikidata.org"]),
    ).toEqual({
      "export.arxiv.org": "hosts.*.arxiv.org",
      "arxiv.org": "presets.arxiv",
      "gitlab.com": "hosts.gitlab.com",
      "de.wikipedia.org": "presets.wikimedia-action-api",
      "query.wikidata.org": "presets.wikidata-sparql",
    });
  });

  it("applies presets of low confidence only where they are named", () => {
    expect(originsOf({ presets: true }, ["www.reuters.com"])).toEqual({ "www.reuters.com": "default" });
    expect(originsOf({ presets: ["reuters"] }, ["www.reuters.com"])).toEqual({ "www.reuters.com": "presets.reuters" });
    expect(originsOf({ presets: ["reuters"] }, ["arxiv.org"])).toEqual({ "arxiv.org": "default" });
  });

  it("applies the whole policy collector only where it is named, its default only where there is none", () => {
    const keys = ["finance.yahoo.com", "toyota.company-ir", "eia.gov", "other.example"];
    const collected = compilePolicy({ presets: ["collector"] });
    expect(keys.map((key) => collected.hostRule(key).origin)).toEqual(Array(4).fill("presets.collector"));
    expect(collected.hostRule("finance.yahoo.com").rule).toMatchObject({
      gapUs: 2_000_000,
      windows: [{ count: 3, perUs: 60_000_000, grainUs: 1 }],
      backoff: { kind: "exponential", baseUs: 5_000_000, maxUs: 60_000_000 },
    });
    expect(collected.hostRule("eia.gov").rule.backoff.kind).toBe("none");
    expect(collected.hostRule("other.example").rule).toMatchObject({ gapUs: 1_000_000, rateCount: 0 });
    expect(originsOf({ presets: ["collector"], default: {} }, ["other.example"])).toEqual({
      "other.example": "default",
    });
    expect(originsOf({ presets: true }, ["finance.yahoo.com"])).toEqual({ "finance.yahoo.com": "default" });
  });

  it("exempts localhost unless the policy names it", () => {
    const local = ["localhost", "app.localhost", "127.0.0.1", "127.9.9.9", "[::1]"];
    const exemptOf = (policy: PolicyInput) => {
      const compiled = compilePolicy(policy);
      return local.map((key) => compiled.hostRule(key).exempt);
    };
    expect(exemptOf({})).toEqual([true, true, true, true, true]);
    expect(exemptOf({ localhost: "limited" })).toEqual([false, false, false, false, false]);
    expect(exemptOf({ hosts: { localhost: {}, "*.localhost": {} } })).toEqual([false, false, true, true, true]);
    expect(exemptOf({ hosts: { "::1": {}, "127.0.0.1": {} } })).toEqual([true, true, false, true, false]);
    expect(compilePolicy().hostRule("localhost")).toMatchObject({ origin: "localhost", rule: { enabled: false } });
  });

  it("limits a port of localhost that is named, and no other", () => {
    const policy = compilePolicy({ hosts: { "localhost:3000": { rate: "1/s" } } });
    expect(policy.resolve("http://localhost:3000/").key).toBe("localhost:3000");
    expect(policy.hostRule("localhost:3000").exempt).toBe(false);
    expect(policy.hostRule(policy.resolve("http://localhost:4000/").key).exempt).toBe(true);
  });

  it("finds a scope by its name, else by its longest beginning", () => {
    const { scopeRule } = compilePolicy({
      scopes: {
        "proxy:*": { concurrency: 1 },
        "proxy:eu-*": { concurrency: 2 },
        "proxy:eu-1": { concurrency: 3 },
        "key:a": { concurrency: 4 },
      },
    });
    const names = ["proxy:us", "proxy:eu-9", "proxy:eu-1", "key:a", "key:b", "proxy"];
    expect(names.map((name) => scopeRule(name)?.concurrency)).toEqual([1, 2, 3, 4, undefined, undefined]);
    expect(scopeRule("proxy:us")).toBe(scopeRule("proxy:jp"));
  });

  it("keeps intents with their host, and drops them with a host that is off", () => {
    const intents = { search: { window: "10/min" } } as const;
    const policy = compilePolicy({ hosts: { "x.org": { intents }, "y.org": { enabled: false, intents } } });
    expect(policy.hostRule("x.org").intents.get("search")?.text.windows).toEqual(["10/min"]);
    expect(policy.hostRule("y.org").intents.size).toBe(0);
  });

  it("has a rule over everything only when asked", () => {
    expect(compilePolicy().global).toBeUndefined();
    expect(compilePolicy({ global: { concurrency: 9 } }).global?.concurrency).toBe(9);
  });

  it("looks up the key of an own groupBy as it is", () => {
    const policy = compilePolicy({
      groupBy: (url) => url.hostname.split(".").slice(-2).join("."),
      hosts: { "x.org": {} },
    });
    expect(policy.hostIsKey).toBe(false);
    expect(policy.hostRule(policy.resolve("https://a.b.x.org/").key).origin).toBe("hosts.x.org");
    expect(compilePolicy().hostIsKey).toBe(true);
  });

  it("bounds the queues of hosts by default, and those that hosts share only where it is written", () => {
    const intents = { search: { rate: "1/s" }, find: { maxQueue: 7 } } as const;
    const policy = compilePolicy({
      hosts: { "x.org": { rate: "1/s", intents } },
      global: { concurrency: 9 },
      scopes: { "proxy:*": { concurrency: 1 }, "key:a": { maxQueue: 8 } },
    });
    const host = policy.hostRule("x.org");
    expect([host.rule.maxQueue, policy.hostRule("y.org").rule.maxQueue]).toEqual([100_000, 100_000]);
    expect([host.intents.get("search")?.maxQueue, host.intents.get("find")?.maxQueue]).toEqual([Infinity, 7]);
    expect([policy.scopeRule("proxy:a")?.maxQueue, policy.scopeRule("key:a")?.maxQueue]).toEqual([Infinity, 8]);
    expect(policy.global?.maxQueue).toBe(Infinity);
    expect(compilePolicy({ global: { maxQueue: 6 } }).global?.maxQueue).toBe(6);
    expect(compileKeyPolicy({ rate: "1/s" }, "jobs").hostRule("jobs").rule.maxQueue).toBe(100_000);
  });

  it.each([
    ["GroupA", "hosts.groupa"],
    ["groupa", "hosts.groupa"],
    ["GROUPB", "hosts.groupb"],
    ["Bücher", "hosts.xn--bcher-kva"],
    ["7", "hosts.0.0.0.7"],
    ["GroupC:81", "hosts.groupc:81"],
    ["One.Shop", "hosts.*.shop"],
    ["Group A", "default"],
    ["2130706433", "default"],
    ["localhost", "localhost"],
  ])("finds the entry of the key %j of an own groupBy: %s", (key, origin) => {
    const pace = { rate: "1/s" } as const;
    const policy = compilePolicy({
      groupBy: () => key,
      hosts: { GroupA: pace, groupb: pace, Bücher: pace, "7": pace, "GroupC:81": pace, "*.shop": pace },
    });
    const resolved = policy.resolve("https://x.org/");
    expect(resolved.key).toBe(key);
    expect(policy.hostRule(resolved.key).origin).toBe(origin);
  });

  it("warns of bursts above a minute of their rate, wherever they are", () => {
    const large = { rate: "1/s", burst: 61 } as const;
    const fine = { rate: "1/s", burst: 60 } as const;
    const { warnings } = compilePolicy({
      default: large,
      hosts: { "x.org": { ...fine, intents: { search: large } }, "y.org": { rate: "1/h" } },
      global: large,
      scopes: { "proxy:*": large },
      presets: ["mastodon"],
    });
    expect(warnings.map(({ path }) => path)).toEqual([
      "default.burst",
      'hosts["x.org"].intents["search"].burst',
      "global.burst",
      'scopes["proxy:*"].burst',
      "presets",
    ]);
    expect(warnings[0].message).toContain("the rate 1/s gives in 60 s; got 61");
  });
});

describe("compileKeyPolicy", () => {
  it("answers everything with the one key and its limits", () => {
    const policy = compileKeyPolicy({ rate: "5/s", burst: 10 }, "jobs");
    expect(policy.resolve("whatever").key).toBe("jobs");
    expect(policy.hostRule("jobs").rule.text.rate).toBe("5/s burst 10");
    expect(policy.hostRule("jobs").exempt).toBe(false);
  });

  it("names the field alone in its problems", () => {
    expect(() => compileKeyPolicy({ burst: 5 }, "jobs")).toThrow("burst: has no meaning without rate; got 5");
  });
});
