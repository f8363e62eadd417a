import { fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const POLICY = { hosts: { [HERE]: { concurrency: 1 } } };

/** How libraries write the type of the `fetch` they take. */
interface LibraryOptions {
  readonly platform: typeof globalThis.fetch;
  readonly urlOrRequest: (input: string | Request, init?: RequestInit) => Promise<Response>;
  readonly urlOnly: (url: string, init?: { method?: string; headers?: Record<string, string> }) => Promise<Response>;
}

describe("types of fetch", () => {
  it("take the fetch of undici as it is", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const polite = politely(POLICY, { fetch: undiciFetch });
    const response = await polite.fetch(site.origin, { headers: { "x-a": "1" } });
    expect([response.status, response.url, await response.text()]).toEqual([200, `${site.origin}/`, "page"]);
    expect(site.seen[0].headers["x-a"]).toBe("1");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
  });

  it("give a function that is written in place the platform's parameters", async () => {
    const polite = politely(POLICY, {
      fetch: async (input, init) => new Response(`${init?.method} ${new Request(input).url}`),
    });
    const response = await polite.fetch("https://a.example/", { method: "PUT" });
    expect(await response.text()).toBe("PUT https://a.example/");
  });

  it("fit the options of libraries", () => {
    const { fetch } = politely(POLICY);
    const options: LibraryOptions = { platform: fetch, urlOrRequest: fetch, urlOnly: fetch };
    expect(options.platform).toBe(fetch);
  });

  it("take nothing that is no function", () => {
    // @ts-expect-error A text has no signature.
    expect(() => politely(POLICY, { fetch: "fetch" })).toThrow("fetch must be a function");
  });
});
