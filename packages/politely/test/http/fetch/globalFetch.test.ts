import { afterEach, describe, expect, it } from "vitest";
import { type Limiter, type PolicyInput, politely } from "../../../src/index.js";
import { type LocalSite, localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const ONE: PolicyInput = { hosts: { [HERE]: { concurrency: 1 } } };
const nodes = globalThis.fetch;

afterEach(() => {
  globalThis.fetch = nodes;
});

/** Leads from /from to /, and has a robots.txt. */
function pages(): Promise<LocalSite> {
  return localSite(HERE, ({ url }, response) => {
    if (url === "/from") response.writeHead(302, { location: "/" });
    response.end(url === "/robots.txt" ? "User-agent: *\nDisallow: /no" : "page");
  });
}

describe("a limiter whose fetch has taken the place of the global one", () => {
  it.each<[string, (polite: Limiter) => typeof fetch, number]>([
    ["by itself", ({ fetch }) => fetch, 2],
    ["within a function", (polite) => (input, init) => polite.fetch(input, init), 1],
  ])("%s paces every request once", async (_how, put, hops) => {
    await using site = await pages();
    const polite = politely(ONE);
    globalThis.fetch = put(polite);
    for (const send of [globalThis.fetch, polite.fetch]) {
      expect(await (await send(site.origin)).text()).toBe("page");
      expect(await (await send(`${site.origin}/from`)).text()).toBe("page");
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2 * (1 + hops), inFlight: 0 });
  });

  it.each<[string, (polite: Limiter) => typeof fetch]>([
    ["by itself", ({ fetch }) => fetch],
    ["within a function", (polite) => (input, init) => polite.fetch(input, init)],
  ])("%s asks for robots.txt without waiting for itself", async (_how, put) => {
    await using site = await pages();
    const polite = politely({ ...ONE, http: { userAgent: "Archive/1", robots: true } });
    globalThis.fetch = put(polite);
    expect(await (await fetch(site.origin)).text()).toBe("page");
    await expect(fetch(`${site.origin}/no`)).rejects.toMatchObject({ code: "POLITELY_ROBOTS" });
    expect(site.seen.map(({ url }) => url)).toEqual(["/robots.txt", "/"]);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
  });

  it("is paced by the next one that takes its place, and each counts once", async () => {
    await using site = await pages();
    const first = politely(ONE);
    globalThis.fetch = first.fetch;
    const second = politely(ONE);
    globalThis.fetch = second.fetch;
    expect(await (await fetch(site.origin)).text()).toBe("page");
    const counts = [first, second].map((polite) => polite.stats(HERE)?.totalRequests);
    expect([counts, site.seen.length]).toEqual([[1, 1], 1]);
  });
});
