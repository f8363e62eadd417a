import { describe, expect, it } from "vitest";
import type { PolicyInput } from "../../../src/index.js";
import { networkFailure, type Scripted, scriptedSite } from "./scripted.js";

const URL_A = "https://a.example/page";
const FAST = { rate: "100/s", burst: 100 } as const;

function policy(limits: PolicyInput["default"], perMinute = 10): PolicyInput {
  const retry = { attempts: 4, maxWait: "30s", budget: { share: 0, perMinute } } as const;
  return { default: { ...FAST, ...limits }, http: { retry } };
}

function busy(retryAfterSec: number): Scripted {
  return { status: 429, headers: { "retry-after": String(retryAfterSec) } };
}

describe("a repetition that cannot be made within maxWait", () => {
  it.each<[string, PolicyInput["default"], Scripted]>([
    ["since the answer asks for more", {}, busy(3_600)],
    ["since the host's own cooldown takes longer", { cooldown: "60s" }, 429],
    ["since the host's backoff takes longer", { backoff: { kind: "linear", base: "40s", max: "2m" } }, 500],
  ])("is not announced, and the answer is there at once: %s", async (_name, limits, answer) => {
    const { clock, polite, seen, events } = scriptedSite(policy(limits), () => answer);
    const page = await polite.fetch(URL_A);
    expect(page.status).toBeGreaterThan(400);
    expect(clock.now()).toBe(0);
    expect(seen).toHaveLength(1);
    expect(events.filter(({ type }) => type === "retry" || type === "refuse")).toEqual([]);
  });

  it("leaves the failure of the network at once, too", async () => {
    const limits = { backoff: { kind: "linear", base: "40s", max: "2m" } } as const;
    const { clock, polite, events } = scriptedSite(policy(limits), () => networkFailure("ECONNRESET"));
    await expect(polite.fetch(URL_A)).rejects.toThrow("fetch failed");
    expect(clock.now()).toBe(0);
    expect(events.some(({ type }) => type === "retry")).toBe(false);
  });

  it("spends nothing of the budget", async () => {
    const script: Scripted[] = [busy(40), 500, 200];
    const { clock, polite, seen } = scriptedSite(policy({ backoff: "none" }, 1), (index) => script[index]);
    expect((await polite.fetch(URL_A)).status).toBe(429);
    await clock.advance(40_000);
    const page = polite.fetch(URL_A);
    await clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(seen).toHaveLength(3);
  });

  it("is made all the same when the hold is over by the time of its own delay", async () => {
    const retry = { attempts: 2, delay: "50s" } as const;
    const site = scriptedSite({ default: FAST, http: { retry } }, (index) => (index === 0 ? busy(40) : 200));
    const page = site.polite.fetch(URL_A, { politely: { maxWait: "10s" } });
    await site.clock.runToEnd();
    expect((await page).status).toBe(200);
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 50_000]);
  });
});
