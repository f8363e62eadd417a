import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PolicyError } from "../../src/errors.js";
import { compilePolicy } from "../../src/policy/compile.js";
import { loadPolicy } from "../../src/policy/loadPolicy.js";

function problemsOf(text: string | object): readonly { readonly path: string; readonly message: string }[] {
  try {
    loadPolicy(text);
  } catch (error) {
    if (error instanceof PolicyError) return error.problems;
    throw error;
  }
  return [];
}

describe("loadPolicy", () => {
  it.each(["default", "hosts", "global", "scopes"])("takes what has %s for a policy, whatever else it has", (name) => {
    const text = JSON.stringify({ version: "1.0", [name]: {} });
    expect(() => loadPolicy(text)).toThrow(/version: is not a field of the policy/);
  });

  it("reads JSON text and leaves out the line for editors", () => {
    const text = '\uFEFF{ "$schema": "./policy.schema.json", "hosts": { "x.org": { "rate": "5/s", "burst": 2 } } }';
    expect(loadPolicy(text)).toEqual({ hosts: { "x.org": { rate: "5/s", burst: 2 } } });
  });

  it("gives a copy of an object, so that later changes do not reach it", () => {
    const input = { default: { window: ["1/s"] } };
    const policy = loadPolicy(input);
    input.default.window.push("wrong");
    expect(policy).toEqual({ default: { window: ["1/s"] } });
  });

  it.each([
    ['{\n  "default": {,\n}', "line 2, column 15"],
    ['{ "default": { "rate": "1/s" }', "line 1, column 31"],
    ["", "line 1, column 1"],
    ["{} {}", "line 1, column 4"],
    ["rate: 1", "line 1, column 1"],
    ["{\n'a': 1}", "line 2, column 1"],
    ['{"a": [1, 2,]}', "line 1, column 13"],
  ])("says where %j stops being JSON: %s", (text, place) => {
    expect(problemsOf(text).map(({ path }) => path)).toEqual([""]);
    expect(problemsOf(text)[0].message).toContain(`must be JSON, and stops being it at ${place}`);
    expect(problemsOf(text)[0].message.match(/column|position/g)).toHaveLength(1);
  });

  it.each(["null", "5", '"x"', "[]", "true"])("refuses %s, which is JSON but no policy", (text) => {
    expect(problemsOf(text)[0].message).toContain("must be an object");
  });

  it("lists every problem with path, rule and value", () => {
    expect(problemsOf('{ "default": { "rate": "x", "concurrency": 0 }, "hots": {} }')).toEqual([
      { path: "hots", message: 'is not a field of the policy; did you mean "hosts"?' },
      { path: "default.rate", message: expect.stringContaining('got "x"') as string },
      { path: "default.concurrency", message: "must be a whole number from 1 to 1e12; got 0" },
    ]);
  });

  it("takes no harm from names that mean something to JavaScript", () => {
    const policy = loadPolicy(
      '{ "hosts": { "__proto__": { "concurrency": 7 }, "constructor": { "concurrency": 8 } } }',
    );
    expect(Object.keys(policy.hosts ?? {})).toEqual(["__proto__", "constructor"]);
    expect(({} as { concurrency?: number }).concurrency).toBeUndefined();
    expect(Object.getPrototypeOf(policy.hosts)).toBe(Object.prototype);
    const compiled = compilePolicy(policy);
    expect(compiled.hostRule("__proto__").rule.concurrency).toBe(7);
    expect(compiled.hostRule("constructor").rule.concurrency).toBe(8);
    expect(compiled.hostRule("tostring").origin).toBe("default");
    expect(problemsOf('{ "__proto__": { "default": {} } }').map(({ path }) => path)).toEqual(["__proto__"]);
  });

  it("is not troubled by deep nesting", () => {
    const deep = `${'{"default":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    expect(problemsOf(deep).length).toBeGreaterThan(0);
    expect(problemsOf("[".repeat(200_000)).length).toBe(1);
  });

  it("gives a policy that compiles, or a PolicyError, for any JSON", () => {
    const names = fc.constantFrom(
      "default",
      "hosts",
      "rate",
      "burst",
      "window",
      "x.org",
      "*",
      "backoff",
      "__proto__",
      "quota",
    );
    const { tree } = fc.letrec((tie) => ({
      leaf: fc.oneof(fc.constantFrom("1/s", "5s", "linear", null, true), fc.double(), fc.string()),
      tree: fc.oneof(
        { maxDepth: 4 },
        tie("leaf"),
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(names, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const text = JSON.stringify(value);
        const load = (): unknown => (problemsOf(text).length === 0 ? compilePolicy(loadPolicy(text)) : undefined);
        expect(load).not.toThrow();
      }),
    );
  });
});

describe("a file of per-domain limits", () => {
  const file = {
    version: "1.0",
    default_config: { requests_per_second: 1.0, burst_capacity: 1 },
    domains: {
      "shop.example": { requests_per_second: 0.5, burst_capacity: 5 },
      "Wiki.example": { requests_per_second: 2.0, burst_capacity: 2 },
    },
  };

  it("loads as it is, each entry as a token bucket", () => {
    const policy = compilePolicy(loadPolicy(JSON.stringify(file)));
    expect(policy.hostRule("shop.example").rule).toMatchObject({ rateCount: 1, ratePerUs: 2_000_000, burst: 5 });
    expect(policy.hostRule("wiki.example").rule).toMatchObject({ rateCount: 1, ratePerUs: 500_000, burst: 2 });
    expect(policy.hostRule("other.example").rule).toMatchObject({ rateCount: 1, ratePerUs: 1_000_000, burst: 1 });
  });

  it("may leave out the default or the domains", () => {
    expect(loadPolicy({ version: "1.0", domains: {} })).toEqual({ hosts: {} });
    expect(loadPolicy({ version: "1.0", default_config: file.default_config })).toEqual({
      default: { rate: { count: 1, per: "1s" }, burst: 1 },
      hosts: {},
    });
  });

  it("has its errors name the field, the rule and the value, all at once", () => {
    const broken = {
      version: "2.0",
      default_config: { requests_per_second: 0, burst_capacity: 0 },
      domains: { "": { requests_per_second: "1", burst_capacity: 1.5 }, "x.org": { requests_per_second: -1 } },
    };
    expect(problemsOf(broken)).toEqual([
      { path: "version", message: expect.stringContaining('must be "1.0"; got "2.0"') as string },
      { path: "default_config.requests_per_second", message: "must be a number above 0 and at most 1e12; got 0" },
      { path: "default_config.burst_capacity", message: "must be a whole number from 1 to 1e12; got 0" },
      { path: 'domains[""]', message: 'domain must not be empty; got ""' },
      { path: 'domains[""].requests_per_second', message: 'must be a number above 0 and at most 1e12; got "1"' },
      { path: 'domains[""].burst_capacity', message: "must be a whole number from 1 to 1e12; got 1.5" },
      { path: 'domains["x.org"].requests_per_second', message: "must be a number above 0 and at most 1e12; got -1" },
      { path: 'domains["x.org"].burst_capacity', message: expect.stringContaining("is missing") as string },
    ]);
  });

  it("needs its version, and rates that can be counted", () => {
    expect(problemsOf({ domains: {} }).map(({ path }) => path)).toEqual(["version"]);
    const third = { version: "1.0", default_config: { requests_per_second: 1 / 3, burst_capacity: 1 } };
    expect(problemsOf(third)).toEqual([]);
    const large = { version: "1.0", default_config: { requests_per_second: 0.00001, burst_capacity: 1e6 } };
    expect(problemsOf(large)[0].path).toBe("default_config.burst_capacity");
  });

  it("may be the limits of one domain alone, which become the default", () => {
    const limits = { requests_per_second: 2, burst_capacity: 5 };
    expect(loadPolicy(JSON.stringify(limits))).toEqual({ default: { rate: { count: 2, per: "1s" }, burst: 5 } });
    expect(problemsOf({ ...limits, burst_capacity: 0 })).toEqual([
      { path: "burst_capacity", message: "must be a whole number from 1 to 1e12; got 0" },
    ]);
    expect(problemsOf({ requests_per_second: 2 }).map(({ path }) => path)).toEqual(["burst_capacity"]);
  });

  it("warns of a burst of more than a minute of its rate", () => {
    const policy = loadPolicy({ version: "1.0", default_config: { requests_per_second: 1, burst_capacity: 61 } });
    expect(compilePolicy(policy).warnings.map(({ path }) => path)).toEqual(["default.burst"]);
  });
});
