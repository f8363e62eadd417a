import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/index.js";
import { limit, loadPolicy, PolicyError, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

type Problems = readonly { readonly path: string; readonly message: string }[];

function problemsOf(act: () => unknown): Problems {
  try {
    act();
  } catch (error) {
    if (error instanceof PolicyError) return error.problems;
    throw error;
  }
  throw new Error("a PolicyError was expected");
}

const make = (policy: unknown): Problems =>
  problemsOf(() => politely(policy as PolicyInput, { clock: new VirtualClock() }));

const badLimits: readonly (readonly [string, Record<string, unknown>, string?])[] = [
  ["minDelay", { minDelay: -1 }, "-1"],
  ["minDelay", { minDelay: Number.NaN }, "NaN"],
  ["minDelay", { minDelay: Number.POSITIVE_INFINITY }, "Infinity"],
  ["minDelay", { minDelay: "5 parsecs" }, "5 parsecs"],
  ["minDelay", { minDelay: "-2s" }, "-2s"],
  ["minDelay", { minDelay: "" }],
  ["minDelay", { minDelay: {} }],
  ["minDelay", { minDelay: true }, "true"],
  ["rate", { rate: "0/s" }, "0/s"],
  ["rate", { rate: "-1/s" }, "-1/s"],
  ["rate", { rate: "1/0s" }, "1/0s"],
  ["rate", { rate: "fast" }, "fast"],
  ["rate", { rate: "5" }, "5"],
  ["rate", { rate: 5 }, "5"],
  ["rate", { rate: "5/fortnight" }, "5/fortnight"],
  ["rate", { rate: { count: 0, per: 1_000 } }, "0"],
  ["rate", { rate: { count: 1, per: 0 } }, "0"],
  ["rate", { rate: { count: Number.NaN, per: 1_000 } }, "NaN"],
  ["rate", { rate: { count: Number.POSITIVE_INFINITY, per: 1_000 } }, "Infinity"],
  ["rate", { rate: { count: 1 } }],
  ["rate", { rate: { count: 1, per: 1_000, extra: 1 } }, "extra"],
  ["rate", { rate: ["1/s", "2/s"] }],
  ["burst", { rate: "1/s", burst: 0 }, "0"],
  ["burst", { rate: "1/s", burst: -3 }, "-3"],
  ["burst", { rate: "1/s", burst: 1.5 }, "1.5"],
  ["burst", { rate: "1/s", burst: Number.POSITIVE_INFINITY }, "Infinity"],
  ["burst", { rate: "1/s", burst: "2" }, "2"],
  ["burst", { burst: 5 }],
  ["window", { window: "0/min" }, "0/min"],
  ["window", { window: ["5/s", "0/min"] }, "0/min"],
  ["window", { window: { count: 3, per: -1 } }, "-1"],
  ["window", { window: 60 }, "60"],
  ["window", { window: "60/moon" }, "60/moon"],
  ["quota", { quota: { count: 0, per: "day" } }, "0"],
  ["quota", { quota: { count: 1.5, per: "day" } }, "1.5"],
  ["quota", { quota: { count: 10, per: "week" } }, "week"],
  ["quota", { quota: { count: 10, per: "day", timeZone: "Mars/Base" } }, "Mars/Base"],
  ["quota", { quota: { count: 10 } }],
  ["quota", { quota: "10/day" }, "10/day"],
  ["concurrency", { concurrency: 0 }, "0"],
  ["concurrency", { concurrency: -1 }, "-1"],
  ["concurrency", { concurrency: 1.5 }, "1.5"],
  ["concurrency", { concurrency: Number.POSITIVE_INFINITY }, "Infinity"],
  ["countFrom", { countFrom: "end" }, "end"],
  ["backoff", { backoff: "fibonacci" }, "fibonacci"],
  ["backoff", { backoff: { kind: "linear", base: "5s" } }],
  ["backoff", { backoff: { kind: "cubic", base: 1, max: 2 } }, "cubic"],
  ["backoff", { backoff: { kind: "linear", base: "60s", max: "5s" } }],
  ["backoff", { backoff: { kind: "linear", base: "5s", max: "60s", jitter: -0.5 } }, "-0.5"],
  ["cooldown", { cooldown: -1 }, "-1"],
  ["cooldown", { cooldown: Number.POSITIVE_INFINITY }, "Infinity"],
  ["cooldown", { cooldown: [] }],
  ["cooldown", { cooldown: ["10s", "later"] }, "later"],
  ["maxWait", { maxWait: -1 }, "-1"],
  ["maxWait", { maxWait: Number.NaN }, "NaN"],
  ["maxQueue", { maxQueue: -1 }, "-1"],
  ["maxQueue", { maxQueue: 1.5 }, "1.5"],
  ["maxQueue", { maxQueue: Number.NaN }, "NaN"],
  ["maxHold", { maxHold: -1 }, "-1"],
  ["maxHold", { maxHold: Number.POSITIVE_INFINITY }, "Infinity"],
  ["permitTtl", { permitTtl: "x" }, "x"],
  ["adaptive", { adaptive: "yes" }, "yes"],
  ["adaptive", { adaptive: { min: "0/s" } }, "0/s"],
  ["adaptive", { adaptive: { min: "10/s", max: "1/s" } }],
  ["enabled", { enabled: "yes" }, "yes"],
  ["minDellay", { minDellay: 5 }],
];

describe("limits that make no sense", () => {
  it.each(badLimits)("%s in %j is a problem at its path, with the value", (field, limits, value) => {
    const places: readonly (readonly [unknown, string])[] = [
      [{ default: limits }, "default"],
      [{ hosts: { "x.org": limits } }, "x.org"],
      [{ hosts: { "x.org": { intents: { search: limits } } } }, "search"],
      [{ global: limits }, "global"],
      [{ scopes: { "proxy:*": limits } }, "proxy:*"],
    ];
    for (const [policy, place] of places) {
      const problems = make(policy);
      expect(problems).toHaveLength(1);
      expect(problems[0].path).toContain(place);
      expect(problems[0].path).toContain(field);
      expect(problems[0].message.length).toBeGreaterThan(5);
      expect(`${problems[0].path} ${problems[0].message}`).toContain(value ?? field);
    }
  });

  it.each(badLimits)("%s in %j is refused by limit() and its configure() too", (field, limits) => {
    const clock = new VirtualClock();
    expect(problemsOf(() => limit(limits as Limits, { clock }))[0].path).toContain(field);
    const limiter = limit({ minDelay: 1 }, { clock });
    expect(problemsOf(() => limiter.configure(limits as Limits))[0].path).toContain(field);
  });

  it("a misspelt field is told with the one that was meant", () => {
    expect(make({ default: { minDellay: 5 } })[0].message).toContain("minDelay");
  });

  it.each([
    { maxWait: Number.POSITIVE_INFINITY },
    { maxQueue: Number.POSITIVE_INFINITY },
    { maxWait: 0 },
    { maxQueue: 0 },
    { minDelay: 0 },
    { rate: "0.001/s" },
    { window: ["1/s", "100/h"] },
    {},
  ] as readonly Limits[])("%j is fine", (limits) => {
    expect(politely({ default: limits }, { clock: new VirtualClock() }).check("x.org").proceed).toBe(true);
  });
});

describe("a policy that makes no sense", () => {
  it.each([null, 5, "fast", [], true])("%j instead of a policy is a PolicyError", (policy) => {
    expect(make(policy).length).toBeGreaterThan(0);
  });

  it.each([
    ["an unknown field", { hostz: {} }, "hostz"],
    ["hosts as a list", { hosts: [] }, "hosts"],
    ["hosts as text", { hosts: "x.org" }, "hosts"],
    ["a host with null", { hosts: { "x.org": null } }, "x.org"],
    ["an empty host", { hosts: { "": {} } }, "hosts"],
    ["a host with a space", { hosts: { "exa mple.org": {} } }, "exa mple.org"],
    ["a wildcard in the middle", { hosts: { "a.*.org": {} } }, "a.*.org"],
    ["a wildcard of nothing", { hosts: { "*.": {} } }, "*."],
    ["two spellings of one host", { hosts: { "x.org": { minDelay: 1 }, "X.org.": { minDelay: 2 } } }, "X.org."],
    ["intents inside an intent", { hosts: { "x.org": { intents: { a: { intents: {} } } } } }, "intents"],
    ["intents in the default", { default: { intents: {} } }, "intents"],
    ["a default that is null", { default: null }, "default"],
    ["a groupBy that is a number", { groupBy: 5 }, "groupBy"],
    ["a groupBy nobody knows", { groupBy: "planet" }, "groupBy"],
    ["a localhost of its own invention", { localhost: "yes" }, "localhost"],
    ["a preset nobody knows", { presets: ["no-such-preset"] }, "presets"],
    ["presets as text", { presets: "collector" }, "presets"],
    ["presets: false", { presets: false }, "presets"],
    ["a user agent that is a number", { http: { userAgent: 5 } }, "userAgent"],
    ["an unknown field of http", { http: { useragent: "x" } }, "useragent"],
    ["a retry below 0", { http: { retry: { attempts: -1 } } }, "attempts"],
  ])("%s is a problem at its path", (_name, policy, place) => {
    const problems = make(policy);
    expect(problems).toHaveLength(1);
    expect(`${problems[0].path} ${problems[0].message}`).toContain(place);
  });

  it("all problems are told at once, each with its path", () => {
    const problems = make({
      default: { rate: "0/s", burst: 0 },
      hosts: { "a.org": { minDelay: -5 }, "b.org": { window: ["1/s", "x"], intents: { find: { concurrency: 0 } } } },
      global: { quota: { count: 0, per: "day" } },
      typo: true,
    });
    const paths = problems.map((problem) => problem.path).join("\n");
    expect(problems.length).toBeGreaterThanOrEqual(7);
    for (const part of [
      "rate",
      "burst",
      "a.org",
      "minDelay",
      "b.org",
      "window",
      "find",
      "concurrency",
      "global",
      "quota",
      "typo",
    ]) {
      expect(paths).toContain(part);
    }
  });

  it("the message of the error lists every problem too", () => {
    const act = (): unknown =>
      politely({ default: { rate: "0/s" }, global: { concurrency: 0 } }, { clock: new VirtualClock() });
    expect(act).toThrow(/2 problems[\s\S]*rate[\s\S]*concurrency/);
    expect(act).toThrow(expect.objectContaining({ code: "POLITELY_POLICY", name: "PolicyError" }) as Error);
  });

  it("keys that objects have anyway are hosts like any other", () => {
    const limiter = politely(loadPolicy('{"hosts":{"constructor":{"minDelay":"3s"},"__proto__":{"minDelay":"4s"}}}'), {
      clock: new VirtualClock(),
    });
    limiter.tryAcquire("constructor");
    limiter.tryAcquire("__proto__");
    expect(limiter.check("constructor").waitMs).toBe(3_000);
    expect(limiter.check("__proto__").waitMs).toBe(4_000);
    expect(limiter.check("toString").proceed).toBe(true);
  });
});

describe("loadPolicy", () => {
  it.each([
    ["no JSON at all", "minDelay: 5"],
    ["JSON cut short", '{"default": {"minDelay": 5}'],
    ["an empty text", ""],
    ["a list", "[]"],
    ["null", "null"],
    ["a number", "5"],
  ])("%s is a PolicyError", (_name, text) => {
    expect(problemsOf(() => loadPolicy(text)).length).toBeGreaterThan(0);
  });

  it("reads what politely takes, from text and from an object", () => {
    const policy = { default: { minDelay: "2s" }, hosts: { "x.org": { window: "5/min" } } } as const;
    expect(loadPolicy(JSON.stringify(policy))).toEqual(policy);
    expect(loadPolicy(policy)).toEqual(policy);
  });

  it("lists every problem of a file at once", () => {
    const problems = problemsOf(() => loadPolicy('{"default":{"rate":"0/s"},"hosts":{"x.org":{"burst":0}},"oops":1}'));
    const paths = problems.map((problem) => problem.path).join("\n");
    for (const part of ["rate", "burst", "oops"]) expect(paths).toContain(part);
  });

  it.each([5, true, undefined, null])("%j instead of text or an object is refused", (value) => {
    expect(() => loadPolicy(value as unknown as string)).toThrow(/policy/i);
  });

  it.each([
    [
      "an unknown field in default_config",
      { version: "1.0", default_config: { requests_per_second: 1, burst_capacity: 1, extra: 1 } },
      "extra",
    ],
    [
      "a version nobody knows",
      { version: "9.0", default_config: { requests_per_second: 1, burst_capacity: 1 } },
      "version",
    ],
    [
      "domains as a list",
      { version: "1.0", default_config: { requests_per_second: 1, burst_capacity: 1 }, domains: [] },
      "domains",
    ],
    ["an empty domain", { version: "1.0", domains: { "": { requests_per_second: 1, burst_capacity: 1 } } }, "domains"],
  ])("of the other shape: %s is a problem", (_name, file, place) => {
    const problems = problemsOf(() => loadPolicy(file));
    expect(problems.map((problem) => `${problem.path} ${problem.message}`).join("\n")).toContain(place);
  });
});
