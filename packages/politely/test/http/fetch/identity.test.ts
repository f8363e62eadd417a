import { describe, expect, it } from "vitest";
import { type PolicyInput, politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";
import { scriptedSite } from "./scripted.js";

async function agentOf(http: PolicyInput["http"], init?: RequestInit): Promise<string | null> {
  const site = scriptedSite(http === undefined ? {} : { http }, () => 200);
  await site.polite.fetch("https://a.example/", init);
  return site.seen[0].headers.get("user-agent");
}

describe("who is calling", () => {
  it("is said by program and contact", async () => {
    expect(await agentOf({ userAgent: "Archive/2.1", contact: "me@archive.example" })).toBe(
      "Archive/2.1 (+me@archive.example)",
    );
  });

  it("is said by a contact alone, too", async () => {
    expect(await agentOf({ contact: "me@archive.example" })).toBe("politely (+me@archive.example)");
  });

  it("is not said twice", async () => {
    const userAgent = "Archive/2.1 (me@archive.example)";
    expect(await agentOf({ userAgent, contact: "me@archive.example" })).toBe(userAgent);
  });

  it("is what the caller sets, if it sets something", async () => {
    for (const headers of [
      { "User-Agent": "Own/1" },
      new Headers({ "user-agent": "Own/1" }),
      [["USER-AGENT", "Own/1"]],
    ]) {
      expect(await agentOf({ userAgent: "Archive/2.1" }, { headers: headers as HeadersInit })).toBe("Own/1");
    }
  });

  it("is added to other headers", async () => {
    const site = scriptedSite({ http: { userAgent: "Archive/2.1" } }, () => 200);
    await site.polite.fetch(new Request("https://a.example/", { headers: { accept: "text/html" } }));
    expect(site.seen[0].headers.get("accept")).toBe("text/html");
    expect(site.seen[0].headers.get("user-agent")).toBe("Archive/2.1");
  });

  it("goes along with redirects", async () => {
    await using site = await localSite("127.0.0.2", ({ url }, response) => {
      if (url === "/") response.writeHead(302, { location: "/end" });
      response.end();
    });
    const polite = politely({ hosts: { "127.0.0.2": { concurrency: 1 } }, http: { userAgent: "Archive/2.1" } });
    await polite.fetch(site.origin);
    expect(site.seen.map(({ headers }) => headers["user-agent"])).toEqual(["Archive/2.1", "Archive/2.1"]);
  });

  const warnings = async (http: PolicyInput["http"], init?: RequestInit) => {
    const policy: PolicyInput = { presets: ["sec-edgar"], ...(http === undefined ? {} : { http }) };
    const site = scriptedSite(policy, () => 200);
    for (let index = 0; index < 3; index++) await site.polite.fetch("https://www.sec.gov/", init);
    return site.events.filter(({ type }) => type === "warn");
  };

  it("is asked for once per host whose preset wants a contact when none is set", async () => {
    expect(await warnings({ userAgent: "Archive/2.1" })).toMatchObject([
      { key: "www.sec.gov", message: expect.stringContaining("http.contact") },
    ]);
    expect(await warnings(undefined)).toHaveLength(1);
  });

  it("is not asked for where a contact is set, in the policy or in the request", async () => {
    expect(await warnings({ userAgent: "Archive/2.1", contact: "me@archive.example" })).toEqual([]);
    expect(await warnings({ userAgent: "Archive/2.1 (https://archive.example)" })).toEqual([]);
    expect(await warnings(undefined, { headers: { "user-agent": "Own/1 me@archive.example" } })).toEqual([]);
  });
});
