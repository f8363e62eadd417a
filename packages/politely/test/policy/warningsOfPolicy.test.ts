import { describe, expect, it } from "vitest";
import { compilePolicy } from "../../src/policy/compile.js";
import { compileKeyPolicy } from "../../src/policy/compileKey.js";
import type { HostLimits, PolicyInput } from "../../src/policy/types.js";

const noEffect = "has an effect only with a store";

describe("a field without effect", () => {
  it("is warned of wherever it is given", () => {
    const limits = { rate: "1/s", permitTtl: "30s" } as const;
    const { warnings } = compilePolicy({
      default: limits,
      hosts: { "x.org": { rate: "1/s", intents: { search: limits } } },
      global: limits,
    });
    expect(warnings.map(({ path }) => path)).toEqual([
      "default.permitTtl",
      'hosts["x.org"].intents["search"].permitTtl',
      "global.permitTtl",
    ]);
    expect(new Set(warnings.map(({ message }) => message))).toEqual(new Set([noEffect]));
  });

  it("is warned of in the limits of a single key too", () => {
    expect(compileKeyPolicy({ permitTtl: "1s" }, "jobs").warnings).toEqual([
      { path: "permitTtl", message: noEffect, isForStore: true },
    ]);
  });
});

describe("robots.txt", () => {
  it("can only be obeyed in somebody's name", () => {
    expect(compilePolicy({ http: { robots: true } }).warnings).toMatchObject([{ path: "http.robots" }]);
    expect(compilePolicy({ http: { robots: true, userAgent: "Archive/1" } }).warnings).toEqual([]);
    expect(compilePolicy({ http: { robots: { userAgent: "Archive" } } }).warnings).toEqual([]);
    expect(compilePolicy({ http: { robots: false } }).warnings).toEqual([]);
  });

  it("has no rules for Mozilla, which stands before the name in many User-Agents", () => {
    const userAgent = "Mozilla/5.0 (compatible; NewsBot/1.0)";
    expect(compilePolicy({ http: { robots: true, userAgent } }).warnings).toMatchObject([{ path: "http.robots" }]);
    expect(compilePolicy({ http: { robots: { userAgent: "NewsBot" }, userAgent } }).warnings).toEqual([]);
  });
});

describe("an entry of hosts without a pace", () => {
  const warningsFor = (limits: HostLimits, rest: PolicyInput = {}, host = "x.org") =>
    compilePolicy({ ...rest, hosts: { [host]: limits } }).warnings;

  it.each<[HostLimits, string]>([
    [{ concurrency: 2 }, "only concurrency; add rate or window"],
    [{ minDelay: 0, cooldown: "5s", concurrency: 2 }, "only concurrency, cooldown; add"],
    [{ intents: { search: { rate: "1/s" } } }, "only intents; add"],
    [{}, "nothing limits it; add"],
    [{ minDelay: "0s" }, "nothing limits it; add"],
  ])("is warned of: %j, %s", (limits, rest) => {
    const warnings = warningsFor(limits);
    expect(warnings.map(({ path }) => path)).toEqual(['hosts["x.org"]']);
    expect(warnings[0].message).toContain(`replaces the default whole and has no pace of its own: ${rest}`);
  });

  it.each<HostLimits>([
    { enabled: false },
    { minDelay: 1 },
    { rate: "1/s" },
    { window: "60/min" },
    { quota: { count: 5, per: "day" } },
  ])("is something else than %j", (limits) => {
    expect(warningsFor(limits)).toEqual([]);
  });

  it.each<PolicyInput>([{ default: {} }, { default: { enabled: false } }, { default: { concurrency: 4 } }])(
    "loses nothing under %j",
    (rest) => {
      expect(warningsFor({ concurrency: 2 }, rest)).toEqual([]);
    },
  );

  it("is told which preset it replaces, be it for the host or for its subdomains", () => {
    const rest: PolicyInput = { default: {}, presets: ["arxiv"] };
    expect(warningsFor({ concurrency: 1 }, rest, "export.arxiv.org")[0].message).toContain(
      "replaces presets.arxiv whole",
    );
    expect(warningsFor({ concurrency: 1 }, rest, "x.org")).toEqual([]);
  });

  it("takes nothing from a localhost that would not be paced", () => {
    expect(warningsFor({ concurrency: 4 }, {}, "localhost:3000")).toEqual([]);
    expect(warningsFor({ concurrency: 4 }, { localhost: "limited" }, "localhost")).toHaveLength(1);
  });
});
