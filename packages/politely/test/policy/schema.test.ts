import { describe, expect, it } from "vitest";
import { limitsShape } from "../../src/policy/limitsShape.js";
import { policyShape } from "../../src/policy/schema.js";
import { validate } from "../../src/policy/validate.js";

const problemsOf = (policy: unknown) => validate(policyShape, policy, { allowFunctions: true });
const limitProblemsOf = (limits: unknown) => validate(limitsShape, limits, { allowFunctions: true });

describe("limits", () => {
  it.each([
    {},
    { enabled: false },
    { enabled: true, minDelay: 0 },
    { minDelay: "2s", rate: "5/s", burst: 10, window: ["60/min", { count: 5, per: "1s" }] },
    { quota: { count: 1_000, per: "day" } },
    { quota: { count: 1_000, per: "month", timeZone: "Asia/Tokyo" } },
    { quota: { count: 1, per: "hour", timeZone: "Etc/GMT+9" } },
    { concurrency: 4, countFrom: "answer" },
    { backoff: "none" },
    { backoff: { kind: "exponential", base: "1s", max: "1s", jitter: 1 } },
    { cooldown: 0 },
    { cooldown: ["10s", "20s", "40s"] },
    { adaptive: true },
    { adaptive: { min: "1/s", max: "60/min" } },
    { adaptive: { max: "1/s" } },
    { maxWait: 0, maxQueue: 0 },
    { maxWait: Number.POSITIVE_INFINITY, maxQueue: Number.POSITIVE_INFINITY },
    { permitTtl: "30s", maxHold: "10min" },
    { rate: undefined, burst: undefined },
    Object.assign(Object.create(null), { rate: "1/s" }),
  ])("%j are fine", (limits) => {
    expect(limitProblemsOf(limits)).toEqual([]);
  });

  it.each([
    [{ enabled: "no" }, "enabled", 'true or false; got "no"'],
    [{ enabled: 0 }, "enabled", "true or false; got 0"],
    [{ minDelay: -1 }, "minDelay", "must not be negative; got -1"],
    [{ minDelay: "2 sec" }, "minDelay", 'got "2 sec"'],
    [{ minDelay: null }, "minDelay", "got null"],
    [{ minDelay: Number.POSITIVE_INFINITY }, "minDelay", "must be finite"],
    [{ rate: "0/s" }, "rate", "count above 0"],
    [{ rate: 5 }, "rate", "got 5"],
    [{ rate: "5/fortnight" }, "rate", "one of the units ms, s (sec, second), min (m, minute), h (hour), d (day)"],
    [{ rate: "5/2 weeks" }, "rate", 'after the slash; got "5/2 weeks"'],
    [{ window: "5/S" }, "window", "one of the units"],
    [{ rate: "5 per second" }, "rate", "a count per time such as"],
    [{ rate: "1/0s" }, "rate", "longer than 0"],
    [{ rate: { count: 5, per: 0 } }, "rate", "longer than 0"],
    [{ rate: { count: 5, per: "1s", burst: 2 } }, "rate", '"burst"'],
    [{ rate: "1/s", burst: 0 }, "burst", "from 1 to 1e12; got 0"],
    [{ rate: "1/s", burst: 1.5 }, "burst", "whole number"],
    [{ rate: "1/s", burst: Number.POSITIVE_INFINITY }, "burst", "got Infinity"],
    [{ burst: 5 }, "burst", "has no meaning without rate; got 5"],
    [{ rate: "1/d", burst: 1_000_000 }, "burst", "must be at most 104249 for whole numbers"],
    [{ window: "0/min" }, "window", "count above 0"],
    [{ window: [] }, "window", "1 to 16 entries; got an empty list"],
    [{ window: ["1/s", "x"] }, "window[1]", 'got "x"'],
    [{ quota: { count: 0, per: "day" } }, "quota.count", "got 0"],
    [{ quota: { count: 5, per: "week" } }, "quota.per", '"hour" or "day" or "month"; got "week"'],
    [{ quota: { per: "day" } }, "quota.count", "is missing"],
    [{ quota: { count: 5, per: "day", timeZone: "Mars/Base" } }, "quota.timeZone", 'got "Mars/Base"'],
    [{ quota: { count: 5, per: "day", timeZone: "+09:00" } }, "quota.timeZone", 'got "+09:00"'],
    [{ concurrency: 0 }, "concurrency", "got 0"],
    [{ concurrency: Number.POSITIVE_INFINITY }, "concurrency", "got Infinity"],
    [{ countFrom: "end" }, "countFrom", 'got "end"'],
    [{ backoff: "exponentiel" }, "backoff", 'did you mean "exponential"?'],
    [{ backoff: { kind: "linear", base: "2s", max: "1s" } }, "backoff.base", 'must not be above max "1s"; got "2s"'],
    [{ backoff: { kind: "linear", base: 0, max: "1s" } }, "backoff.base", "longer than 0"],
    [{ backoff: { kind: "linear", base: 1, max: 2, jitter: -0.1 } }, "backoff.jitter", "from 0 to 1; got -0.1"],
    [{ backoff: { kind: "linear", base: 1, max: 2, jitter: Number.NaN } }, "backoff.jitter", "got NaN"],
    [{ cooldown: [] }, "cooldown", "got an empty list"],
    [{ cooldown: ["10s", "x"] }, "cooldown[1]", 'got "x"'],
    [{ adaptive: { min: "2/s", max: "60/min" } }, "adaptive.min", "must not be above max 60/min; got 2/s"],
    [{ maxQueue: -1 }, "maxQueue", "or Infinity; got -1"],
    [{ maxHold: 0 }, "maxHold", "longer than 0"],
    [{ maxHold: Number.POSITIVE_INFINITY }, "maxHold", "finite"],
    [{ mindelay: 5 }, "mindelay", 'did you mean "minDelay"?'],
    [{ max_queue: 5 }, "max_queue", 'did you mean "maxQueue"?'],
    [{ windwo: 5 }, "windwo", 'did you mean "window"?'],
    [{ zebra: 5 }, "zebra", "known are enabled, minDelay"],
  ])("%j have a problem at %s: %s", (limits, path, message) => {
    const problems = limitProblemsOf(limits);
    expect(problems.map((problem) => problem.path)).toEqual([path]);
    expect(problems[0].message).toContain(message);
  });
});

describe("a policy", () => {
  it.each([
    {},
    { $schema: "./policy.schema.json" },
    { default: { rate: "1/s" }, hosts: { "x.org": { intents: { search: { rate: "1/3s" } } }, "*.x.org": {} } },
    { hosts: { "x.org": {}, "x.org:8443": {}, "[::1]:3000": {}, localhost: {} } },
    { global: { concurrency: 10 }, scopes: { "proxy:*": { rate: "1/s" }, "key:abc": {}, "*": {} } },
    { groupBy: "host", localhost: "limited", presets: true },
    { groupBy: (url: URL) => url.hostname },
    { presets: ["arxiv", "collector"] },
    { presets: [] },
    {
      http: {
        userAgent: "shop-watch/1.0",
        contact: "me@example.com",
        robots: { userAgent: "shop-watch", maxAge: "1d" },
        retry: { attempts: 3, methods: ["GET"], maxWait: "1min" },
        maxCrawlDelay: "30s",
      },
    },
  ])("%j is fine", (policy) => {
    expect(problemsOf(policy)).toEqual([]);
  });

  it.each([
    [{ hosts: { "x.org": { rate: "x" } } }, 'hosts["x.org"].rate', 'got "x"'],
    [{ hosts: { "x.org": { intents: { a: { rate: "x" } } } } }, 'hosts["x.org"].intents["a"].rate', 'got "x"'],
    [{ hosts: { "x.org": { intents: { "": {} } } } }, 'hosts["x.org"].intents[""]', "1 to 200 characters"],
    [{ hosts: { "x.org": 5 } }, 'hosts["x.org"]', "got 5"],
    [{ hosts: [] }, "hosts", "got an empty list"],
    [{ hosts: new Map([["x.org", {}]]) }, "hosts", "got an object"],
    [{ hosts: { "X.org": {}, "x.org": {} } }, 'hosts["x.org"]', 'the same host as "X.org"'],
    [{ hosts: { "x.org": {}, "x.org.": {} } }, 'hosts["x.org."]', 'the same host as "x.org"'],
    [{ hosts: { "*": {} } }, 'hosts["*"]', "use default"],
    [{ hosts: { "a.*.org": {} } }, 'hosts["a.*.org"]', "in front"],
    [{ hosts: { "*x.org": {} } }, 'hosts["*x.org"]', "in front"],
    [{ hosts: { "*.": {} } }, 'hosts["*."]', "must not be empty"],
    [{ hosts: { "*.x.org:80": {} } }, 'hosts["*.x.org:80"]', "port after a *"],
    [{ hosts: { "*.127.0.0.1": {} } }, 'hosts["*.127.0.0.1"]', "address"],
    [
      { hosts: { "https://x.org": {} } },
      'hosts["https://x.org"]',
      'without a scheme, a user name or a path; got "https://x.org"; did you mean "x.org"?',
    ],
    [{ hosts: { "https://x.org:8443/a?b": {} } }, 'hosts["https://x.org:8443/a?b"]', 'did you mean "x.org:8443"?'],
    [{ hosts: { "https://*.x.org/": {} } }, 'hosts["https://*.x.org/"]', 'did you mean "*.x.org"?'],
    [{ hosts: { "x.org/a": {} } }, 'hosts["x.org/a"]', 'did you mean "x.org"?'],
    [{ hosts: { "me@x.org": {} } }, 'hosts["me@x.org"]', 'did you mean "x.org"?'],
    [{ hosts: { "https://a b/": {} } }, 'hosts["https://a b/"]', "without a scheme"],
    [{ hosts: { "x.org": { intents: { "a\nb": {} } } } }, 'hosts["x.org"].intents["a\\nb"]', "control character"],
    [
      { scopes: { "a\u0000": {} } },
      'scopes["a\\u0000"]',
      "scope must be a name of 1 to 200 characters, none of them a",
    ],
    [{ scopes: { "proxy\u007f:*": {} } }, 'scopes["proxy\u007f:*"]', "control character"],
    [{ hosts: { "": {} } }, 'hosts[""]', "must not be empty"],
    [{ default: { intents: {} } }, "default.intents", "is not a field"],
    [{ default: { window: ["1/s", "0/s"] } }, "default.window[1]", '"0/s"'],
    [{ global: null }, "global", "got null"],
    [{ scopes: { "a*b": {} } }, 'scopes["a*b"]', "at the end"],
    [{ scopes: { host: {} } }, 'scopes["host"]', "must not be one of"],
    [{ groupBy: "hosts" }, "groupBy", 'did you mean "host"?'],
    [{ groupBy: 5 }, "groupBy", "a function of a URL; got 5"],
    [{ localhost: "off" }, "localhost", 'got "off"'],
    [{ presets: false }, "presets", "got false"],
    [{ presets: ["arxvi"] }, "presets[0]", 'did you mean "arxiv"? politely/presets has the list'],
    [{ presets: ["github"] }, "presets[0]", 'got "github"; did you mean "github-rest"? politely/presets has the list'],
    [{ presets: ["wiki"] }, "presets[0]", 'did you mean "wikimedia-action-api" or "wikidata-sparql"?'],
    [{ presets: ["no-such-thing"] }, "presets[0]", 'got "no-such-thing"; politely/presets has the list'],
    [{ presets: ["arxiv", 5] }, "presets[1]", "the name of a preset; got 5"],
    [{ http: { userAgent: "a\r\nb: c" } }, "http.userAgent", "one line"],
    [{ http: { userAgent: "Bot/1 (☃)" } }, "http.userAgent", "Latin-1"],
    [{ http: { retry: { attempts: 0 } } }, "http.retry.attempts", "got 0"],
    [{ "": {} }, '[""]', "is not a field"],
    [{ default: { "": 1 } }, 'default[""]', "is not a field"],
    [{ "a\nb": 1 }, '["a\\nb"]', "is not a field"],
    [{ defaults: {} }, "defaults", 'did you mean "default"?'],
    [{ rate: "5/s" }, "rate", 'did you mean "default.rate"?'],
    [{ maxWait: "5s" }, "maxWait", 'did you mean "default.maxWait"?'],
    [{ min_delay: "5s" }, "min_delay", 'did you mean "default.minDelay"?'],
    [[], "", "got an empty list"],
    [null, "", "got null"],
    ["x", "", 'got "x"'],
  ])("%j has a problem at %s: %s", (policy, path, message) => {
    const problems = problemsOf(policy);
    expect(problems.map((problem) => problem.path)).toEqual([path]);
    expect(problems[0].message).toContain(message);
  });

  it("has all its problems listed at once", () => {
    const policy = { default: { rate: "x", burst: 0 }, hosts: { "a b": { minDelay: -1 } }, zebra: 1 };
    expect(problemsOf(policy).map(({ path }) => path)).toEqual([
      "zebra",
      "default.rate",
      "default.burst",
      'hosts["a b"]',
      'hosts["a b"].minDelay',
    ]);
  });

  it("may not hold functions in a file", () => {
    const [problem] = validate(policyShape, { groupBy: () => "x" }, { allowFunctions: false });
    expect(problem).toEqual({ path: "groupBy", message: 'must be "host" or "domain"; got a function' });
  });

  it("is looked at no deeper than its shape goes", () => {
    const endless: Record<string, unknown> = {};
    endless.hosts = endless;
    endless.default = endless;
    expect(problemsOf(endless).length).toBeGreaterThan(0);
  });
});
