import { describe, expect, it } from "vitest";
import { type Limits, type PolicyInput, politely } from "../../../src/index.js";
import { scriptedSite } from "./scripted.js";

const URL_A = "https://a.example/";

/** What a request that the limiter refuses is answered with. */
async function refused(limits: Limits, http: PolicyInput["http"] = { refusal: "response" }): Promise<Response> {
  const { polite } = scriptedSite({ default: limits, http }, () => 200);
  await polite.fetch(URL_A);
  polite.fetch(URL_A).catch(() => undefined);
  return polite.fetch(URL_A, { politely: { maxWait: "1s" } });
}

describe("a request that the limiter refuses", () => {
  it("is answered with a 429 of our own where the policy says so", async () => {
    const response = await refused({ window: "1/90500ms" });
    expect([response.status, response.ok, response.statusText]).toEqual([429, false, "Too Many Requests"]);
    expect(Object.fromEntries(response.headers)).toEqual({
      "content-type": "text/plain;charset=UTF-8",
      "retry-after": "181",
      "x-should-retry": "false",
    });
    expect(await response.text()).toMatch(/a\.example.*window/s);
  });

  it("has no retry-after where nobody knows how long it would be", async () => {
    const response = await refused({ window: "1/h", maxQueue: 1 });
    expect([response.status, response.headers.has("retry-after")]).toEqual([429, false]);
    expect(await response.text()).toContain("full");
  });

  it("fails with its error by default", async () => {
    for (const http of [{}, { refusal: "error" as const }]) {
      await expect(refused({ window: "1/h" }, http)).rejects.toMatchObject({ code: "POLITELY_DEADLINE" });
    }
  });

  it("is neither counted nor taken for an answer of the site", async () => {
    const { polite, seen } = scriptedSite({ default: { window: "1/h" }, http: { refusal: "response" } }, () => 200);
    for (const status of [200, 429, 429]) {
      expect((await polite.fetch(URL_A, { politely: { maxWait: 0 } })).status).toBe(status);
    }
    expect(seen).toHaveLength(1);
    expect(polite.stats(URL_A)).toMatchObject({ refused: 2, throttledRequests: 0, cooldownMs: 0 });
  });

  it("by robots.txt, by close or by an abort still fails with its error", async () => {
    const http = { userAgent: "Test/1", robots: true, refusal: "response" } as const;
    const { polite } = scriptedSite({ default: { rate: "9/s", burst: 9 }, http }, () => ({
      status: 200,
      body: "User-agent: *\nDisallow: /",
    }));
    await expect(polite.fetch(URL_A)).rejects.toMatchObject({ code: "POLITELY_ROBOTS" });
    await expect(polite.fetch(URL_A, { signal: AbortSignal.abort("no") })).rejects.toBe("no");
    const closed = politely({ http: { refusal: "response" } });
    await closed.close();
    await expect(closed.fetch(URL_A)).rejects.toMatchObject({ code: "POLITELY_CLOSED" });
  });

  it("is a problem of the policy where it is written wrongly", () => {
    expect(() => politely({ http: { refusal: "answer" } } as unknown as PolicyInput)).toThrow("http.refusal");
  });
});
