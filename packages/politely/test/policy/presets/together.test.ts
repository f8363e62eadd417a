import { describe, expect, it } from "vitest";
import type { PolicyInput } from "../../../src/index.js";
import { presets } from "../../../src/policy/presets/index.js";
import { politely } from "../../../src/politely.js";
import { VirtualClock } from "../../../src/testing/virtualClock.js";

function grants(limiter: { tryAcquire(host: string): unknown }, hosts: readonly string[], times: number): number {
  let count = 0;
  for (let index = 0; index < times; index++) {
    for (const host of hosts) if (limiter.tryAcquire(host) !== undefined) count += 1;
  }
  return count;
}

describe("a preset whose site counts its hosts as one", () => {
  const edgar = ["www.sec.gov", "data.sec.gov", "efts.sec.gov"];

  it("gives all its hosts together one budget", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ presets: ["sec-edgar"] }, { clock });
    expect(grants(limiter, edgar, 20)).toBe(10);
    await clock.advance(1000);
    expect(grants(limiter, ["data.sec.gov"], 20)).toBe(10);
    expect(limiter.explain("www.sec.gov").causes.map(({ scope }) => scope)).toEqual(["preset:sec-edgar"]);
  });

  it("is what its own limits say, for each of them", () => {
    const together = presets.filter(({ countsTogether }) => countsTogether === true);
    expect(together.map(({ id }) => id)).toContain("arxiv");
    for (const { id, hosts: patterns } of together) {
      const hosts = patterns.map((pattern) => pattern.replace("*", "www"));
      const clock = new VirtualClock();
      const [one, other] = [politely({ presets: [id] }, { clock }), politely({ presets: [id] }, { clock })];
      expect(grants(one, hosts, 1200)).toBe(grants(other, hosts.slice(0, 1), 1200));
    }
  });

  it("counts its hosts apart where the site does", () => {
    const limiter = politely({ presets: ["companies-house"] }, { clock: new VirtualClock() });
    const hosts = ["api.company-information.service.gov.uk", "document-api.company-information.service.gov.uk"];
    expect(grants(limiter, hosts, 1000)).toBe(1200);
  });

  it("leaves out a host that has an entry of its own", () => {
    const hosts = { "www.sec.gov": { window: "3/s" } } as const;
    const limiter = politely({ presets: ["sec-edgar"], hosts }, { clock: new VirtualClock() });
    expect(grants(limiter, ["www.sec.gov"], 20)).toBe(3);
    expect(grants(limiter, ["data.sec.gov", "efts.sec.gov"], 20)).toBe(10);
  });

  it("has the budget that the policy's scopes give it, if they do", () => {
    const scopes = { "preset:sec-edgar": { window: "4/s" } } as const;
    const limiter = politely({ presets: ["sec-edgar"], scopes }, { clock: new VirtualClock() });
    expect(grants(limiter, edgar, 20)).toBe(4);
  });

  it("counts the hosts of a pattern together as well", () => {
    const limiter = politely({ presets: ["wikimedia-action-api"] }, { clock: new VirtualClock() });
    for (let start = 0; start < 200; start++) {
      limiter.tryAcquire(start % 2 === 0 ? "en.wikipedia.org" : "de.wikipedia.org")?.release();
    }
    expect(limiter.tryAcquire("www.wikidata.org")).toBeUndefined();
    expect(limiter.explain("www.wikidata.org").causes.map(({ scope }) => scope)).toEqual([
      "preset:wikimedia-action-api",
    ]);
  });

  it.each([
    [{}, "presets"],
    [{ presets: ["wikimedia-action-api"], hosts: { "en.wikipedia.org": { window: "1/s" } } }, "presets"],
    [{ presets: ["wikimedia-action-api"], hosts: { "*.wikipedia.org": { window: "1/s" } } }, "presets"],
    [{ presets: ["wikimedia-action-api"], hosts: { "fr.wikipedia.org": { window: "1/s" } } }, undefined],
    [{ presets: ["wikimedia-action-api", "arxiv"] }, undefined],
  ] as [PolicyInput, string | undefined][])("keeps known hosts of a pattern together: %j (L11)", (policy, path) => {
    const limiter = politely({ presets: ["wikimedia-action-api"] }, { clock: new VirtualClock() });
    limiter.tryAcquire("en.wikipedia.org");
    const change = (): void => limiter.configure(policy);
    if (path === undefined) expect(change).not.toThrow();
    else expect(change).toThrow(/presets: must not change whether en\.wikipedia\.org count together/);
  });

  it("is paused host by host", () => {
    const limiter = politely({ presets: ["sec-edgar"] }, { clock: new VirtualClock() });
    limiter.pause("www.sec.gov");
    expect(limiter.tryAcquire("www.sec.gov")).toBeUndefined();
    expect(limiter.tryAcquire("data.sec.gov")).toBeDefined();
  });

  it("keeps what it has spent when the policy changes", () => {
    const limiter = politely({ presets: ["sec-edgar"] }, { clock: new VirtualClock() });
    expect(grants(limiter, edgar, 20)).toBe(10);
    limiter.configure({ presets: ["sec-edgar"], default: { rate: "2/s" } });
    expect(grants(limiter, edgar, 20)).toBe(0);
  });
});
