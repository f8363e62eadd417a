import { describe, expect, it } from "vitest";
import { compilePolicy } from "../../../src/policy/compile.js";
import { readHostPattern } from "../../../src/policy/names.js";
import { collector, findPreset, presets } from "../../../src/policy/presets/index.js";
import { notes } from "../../../src/policy/presets/notes.js";

describe("presets", () => {
  it("have ids and hosts of their own", () => {
    const ids = [...presets.map(({ id }) => id), collector.id];
    expect(new Set(ids).size).toBe(ids.length);
    const hosts = presets.flatMap((preset) => preset.hosts);
    expect(new Set(hosts).size).toBe(hosts.length);
  });

  it("have a line of notes each, and no line is of a site that is gone", () => {
    const noted = notes
      .trim()
      .split("\n")
      .map((line) => line.split(" | ")[0]);
    expect(noted).toEqual(presets.map(({ id }) => id));
  });

  it.each(presets.map((preset) => [preset.id, preset] as const))("%s is valid in all its variants", (id, preset) => {
    for (const limits of [preset.limits, preset.withKey ?? {}, preset.withoutContact ?? {}]) {
      const policy = compilePolicy({ default: {}, hosts: { "example.com": limits } });
      expect(policy.warnings).toEqual([]);
    }
    expect(id).toMatch(/^[a-z0-9-]+$/);
    for (const host of preset.hosts) expect(readHostPattern(host)).toEqual({ ok: true, value: host });
    expect(preset.requiresContact).toBe(preset.userAgent === "required, with contact");
    expect(preset.notes.length).toBeGreaterThan(10);
    expect(preset.date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(preset.confidence === "low" || preset.sources.length > 0).toBe(true);
  });

  it.each(presets.map((preset) => [preset.id, preset] as const))("%s applies to its hosts when named", (id, preset) => {
    const policy = compilePolicy({ presets: [id] });
    const origins = preset.hosts.map((host) => policy.hostRule(host.replace("*", "www")).origin);
    expect(origins).toEqual(preset.hosts.map(() => `presets.${id}`));
  });

  it("name stricter limits of some requests as intents", () => {
    const policy = compilePolicy({ presets: true });
    const windowsOf = (host: string, intent: string) => policy.hostRule(host).intents.get(intent)?.text.windows;
    expect(windowsOf("api.crossref.org", "list")).toEqual(["3/s"]);
    expect(windowsOf("api.scryfall.com", "search")).toEqual(["2/s"]);
    expect(windowsOf("huggingface.co", "api")).toEqual(["500/5min"]);
    expect(windowsOf("huggingface.co", "pages")).toEqual(["100/5min"]);
  });

  it("give the collector's sources their limits under every name they are asked by", () => {
    const hosts = collector.policy.hosts ?? {};
    expect(hosts["www.reuters.com"]).toEqual(hosts["reuters.com"]);
    for (const host of ["www.eia.gov", "api.eia.gov"]) expect(hosts[host]).toEqual(hosts["eia.gov"]);
  });

  it("know what Wikimedia allows since 2026, with a contact and without", () => {
    const { limits, withoutContact, countsTogether } = findPreset("wikimedia-action-api") ?? {};
    expect(limits).toEqual({ window: "200/min", concurrency: 1 });
    expect(withoutContact).toEqual({ window: "10/min", concurrency: 1 });
    expect(countsTogether).toBe(true);
  });

  it("are found by id", () => {
    expect(findPreset("arxiv")?.limits).toEqual({ window: "1/3s", concurrency: 1 });
    expect(findPreset("nobody")).toBeUndefined();
    expect(findPreset("__proto__")).toBeUndefined();
  });
});
