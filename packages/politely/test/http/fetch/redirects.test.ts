import { describe, expect, it } from "vitest";
import { nextHop } from "../../../src/http/redirect.js";
import { type PolicyInput, politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";
import { scriptedSite } from "./scripted.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const NAMED = { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } };

describe("the request after a redirect", () => {
  const post = {
    url: "https://a.example/x?y#part",
    method: "POST",
    headers: new Headers({ authorization: "secret", cookie: "c=1", "content-type": "text/plain", accept: "*/*" }),
    hasBody: true,
  };

  it.each([
    [301, "POST", "GET", false],
    [302, "POST", "GET", false],
    [303, "POST", "GET", false],
    [303, "PUT", "GET", false],
    [303, "HEAD", "HEAD", true],
    [301, "PUT", "PUT", true],
    [302, "DELETE", "DELETE", true],
    [307, "POST", "POST", true],
    [308, "POST", "POST", true],
    [301, "GET", "GET", true],
  ])("after %i to %s is a %s", (status, method, next, hasBody) => {
    const hop = nextHop({ ...post, method }, status, "/next");
    expect([hop.method, hop.hasBody]).toEqual([next, hasBody]);
    expect(hop.headers.has("content-type")).toBe(hasBody);
  });

  it("keeps credentials on its origin and drops them elsewhere", () => {
    expect(nextHop(post, 307, "/next").headers.get("authorization")).toBe("secret");
    for (const location of ["https://b.example/", "http://a.example/", "https://a.example:8443/", "//b.example/"]) {
      const { headers } = nextHop(post, 307, location);
      expect([...headers.keys()]).toEqual(["accept", "content-type"]);
    }
  });

  it("keeps the fragment unless the location has its own", () => {
    expect(nextHop(post, 302, "next").url).toBe("https://a.example/next#part");
    expect(nextHop(post, 302, "next#other").url).toBe("https://a.example/next#other");
  });

  it.each([
    ["/\u00c3\u00bc?\u00c3\u00a9", "https://a.example/%C3%BC?%C3%A9"],
    ["//b\u00c3\u00bccher.example/", "https://xn--bcher-kva.example/"],
    ["/%C3%BC", "https://a.example/%C3%BC"],
    ["/\u00fc", "https://a.example/%EF%BF%BD"],
    ["/\u4f60", "https://a.example/%E4%BD%A0"],
  ])("reads the bytes of its location as UTF-8: %j", (location, url) => {
    expect(nextHop({ ...post, url: "https://a.example/" }, 302, location).url).toBe(url);
  });

  it.each(["ftp://a.example/", "javascript:alert(1)", "data:,x", "http://", "https://[bad/"])(
    "to %s is an error",
    (location) => {
      expect(() => nextHop(post, 302, location)).toThrow(TypeError);
    },
  );
});

describe("redirects and rest", () => {
  /** When a limiter that fetches one page says that it rests. */
  async function restsAtMs({ polite, clock }: ReturnType<typeof scriptedSite>): Promise<number> {
    const page = polite.fetch("https://a.example/");
    let restedAtMs = -1;
    void polite.idle().then(() => {
      restedAtMs = clock.now();
    });
    await clock.runToEnd();
    await page;
    return restedAtMs;
  }

  it("idle waits for the hop that comes next", async () => {
    const site = scriptedSite({ default: { minDelay: "1s" } }, (n) =>
      n === 0 ? { status: 302, headers: { location: "/next" }, body: null } : 200,
    );
    expect(await restsAtMs(site)).toBe(1_000);
  });

  it("idle waits for the page that waits for robots.txt", async () => {
    const site = scriptedSite({ default: { minDelay: "1s" }, http: { userAgent: "Test/1.0", robots: true } }, () => ({
      status: 200,
      body: "User-agent: *\nAllow: /",
    }));
    expect(await restsAtMs(site)).toBe(1_000);
  });

  it.each([
    ["another origin", THERE, "cors"],
    ["the same origin", HERE, "basic"],
  ])("the answer after one to %s has the type that plain fetch gives it", async (_, to, type) => {
    await using end = await localSite(THERE, (_request, response) => response.end("end"));
    await using site = await localSite(HERE, ({ url }, response) => {
      const location = to === HERE ? "/end" : `${end.origin}/end`;
      if (url === "/moved") response.writeHead(302, { location }).end();
      else response.end("end");
    });
    const { fetch } = politely({ hosts: NAMED });
    const types: string[] = [];
    for (const send of [globalThis.fetch, fetch]) types.push((await send(`${site.origin}/moved`)).type);
    expect(types).toEqual([type, type]);
  });
});

describe("redirects of fetch", () => {
  it("are paced under the host of each hop", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end("arrived"));
    await using here = await localSite(HERE, (_request, response) => {
      response.writeHead(302, { location: `${there.origin}/end` }).end("moved");
    });
    const polite = politely({ hosts: NAMED });
    const response = await polite.fetch(`${here.origin}/start`);
    expect(await response.text()).toBe("arrived");
    expect([response.status, response.redirected, response.url]).toEqual([200, true, `${there.origin}/end`]);
    expect(response.clone).toBeTypeOf("function");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
    expect(polite.stats(THERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
  });

  it("do not deadlock on one host at concurrency 1, and each hop keeps the gap", async () => {
    const site = scriptedSite({ default: { minDelay: "3s", concurrency: 1 } }, (index) =>
      index < 3 ? { status: 302, headers: { location: `/${index}` } } : 200,
    );
    const page = site.polite.fetch("https://a.example/");
    await site.clock.runToEnd();
    expect((await page).url).toBe("https://a.example/2");
    expect(site.seen.map(({ atMs }) => atMs)).toEqual([0, 3_000, 6_000, 9_000]);
  });

  it("send a body again after 307 and drop it after 303", async () => {
    await using here = await localSite(HERE, ({ url }, response) => {
      const [status, location] = { "/a": [307, "/b"] as const, "/b": [303, "/c"] as const }[url] ?? [200, ""];
      response.writeHead(status, location === "" ? {} : { location }).end();
    });
    const polite = politely({ hosts: NAMED });
    for (const input of [`${here.origin}/a`, new Request(`${here.origin}/a`, { method: "POST", body: "form" })]) {
      here.seen.length = 0;
      const response = await polite.fetch(input, typeof input === "string" ? { method: "POST", body: "form" } : {});
      expect(response.ok).toBe(true);
      expect(here.seen.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
        "POST /a form",
        "POST /b form",
        "GET /c ",
      ]);
    }
  });

  it("refuse to send a stream twice", async () => {
    const site = scriptedSite({}, () => ({ status: 307, headers: { location: "/b" } }));
    const body = new Blob(["x"]).stream();
    const page = site.polite.fetch("https://a.example/", { method: "POST", body, duplex: "half" } as RequestInit);
    const failure = page.catch((error: unknown) => error);
    await site.clock.runToEnd();
    expect(await failure).toMatchObject({ message: "fetch failed" });
    expect(site.polite.stats("a.example")?.inFlight).toBe(0);
  });

  it("end after 20 with an error that says so, the place free and every hop counted", async () => {
    const site = scriptedSite({ default: { concurrency: 1 } }, (index) => ({
      status: 302,
      headers: { location: `/${index}` },
    }));
    const failure = site.polite.fetch("https://a.example/").catch((error: unknown) => error);
    await site.clock.runToEnd();
    expect(await failure).toMatchObject({ cause: { message: expect.stringContaining("more than 20 times") } });
    expect(site.polite.stats("a.example")).toMatchObject({ totalRequests: 21, inFlight: 0 });
  });

  it("are given back as they are with redirect: manual, and fail with redirect: error", async () => {
    await using here = await localSite(HERE, (_request, response) => {
      response.writeHead(302, { location: "/b" }).end("moved");
    });
    const polite = politely({ hosts: NAMED });
    const manual = await polite.fetch(here.origin, { redirect: "manual" });
    expect([manual.status, manual.redirected, await manual.text()]).toEqual([302, false, "moved"]);
    await expect(polite.fetch(here.origin, { redirect: "error" })).rejects.toThrow(TypeError);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
  });

  it("hear a 429 in the middle of the way: the host of that hop is held", async () => {
    const site = scriptedSite({ default: { rate: "100/s", burst: 10 } }, (_index, { url }) =>
      url.includes("b.example")
        ? { status: 429, headers: { "retry-after": "30" } }
        : { status: 302, headers: { location: "https://b.example/" } },
    );
    const page = site.polite.fetch("https://a.example/");
    await site.clock.advance(100);
    expect((await page).status).toBe(429);
    expect(site.polite.check("b.example").waitMs).toBeGreaterThan(29_000);
    expect(site.polite.check("a.example").proceed).toBe(true);
  });

  it("go the platform's own way where it hides them, as browsers do", async () => {
    const redirects: (string | undefined)[] = [];
    const polite = politely(
      { default: { rate: "100/s", burst: 10 } },
      {
        fetch: async (_input, init) => {
          redirects.push(init?.redirect);
          if (init?.redirect !== "manual") return new Response("end");
          const hidden = Response.error();
          Object.defineProperty(hidden, "type", { value: "opaqueredirect" });
          return hidden;
        },
      },
    );
    expect(await (await polite.fetch("https://a.example/")).text()).toBe("end");
    expect(await (await polite.fetch("https://a.example/")).text()).toBe("end");
    expect(redirects).toEqual(["manual", "follow", "follow"]);
  });

  it("to a place written in UTF-8 lead where the platform goes", async () => {
    await using here = await localSite(HERE, ({ url }, response) => {
      if (url === "/") response.writeHead(302, { location: Buffer.from("/\u00fc").toString("latin1") }).end();
      else response.end();
    });
    const polite = politely({ hosts: NAMED });
    for (const send of [fetch, polite.fetch]) await send(here.origin);
    expect(here.seen.map(({ url }) => url)).toEqual(["/", "/%C3%BC", "/", "/%C3%BC"]);
  });

  it.each([
    ["too many of them", {}, "/", 21],
    ["another scheme", {}, "ftp://a.example/", 1],
    ["no URL", {}, "https://[bad/", 1],
    ["redirect: error", { redirect: "error" } as const, "/", 1],
  ])("that fail say nothing about the host, and are not tried again: %s", async (_name, init, location, count) => {
    await using here = await localSite(HERE, (_request, response) => response.writeHead(302, { location }).end());
    const limits = { concurrency: 1, backoff: "exponential" } as const;
    const polite = politely({ hosts: { [HERE]: limits }, http: { retry: { attempts: 3, delay: 1 } } });
    await expect(polite.fetch(here.origin, init)).rejects.toThrow("fetch failed");
    expect(here.seen).toHaveLength(count);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: count, inFlight: 0, cooldownMs: 0 });
  });

  it("that would send a stream twice take no turn at the next host", async () => {
    const site = scriptedSite({ default: { window: "1/h" } }, () => ({
      status: 307,
      headers: { location: "https://b.example/" },
    }));
    const init = { method: "POST", body: new Blob(["x"]).stream(), duplex: "half" } as RequestInit;
    await expect(site.polite.fetch("https://a.example/", init)).rejects.toMatchObject({
      cause: { code: "POLITELY_REDIRECT", message: expect.stringContaining("stream") },
    });
    expect(site.polite.stats("b.example")).toBeUndefined();
  });

  const priced: PolicyInput = {
    hosts: {
      "a.example": { rate: "9/s", burst: 9, intents: { search: { rate: "9/s", burst: 9 } } },
      "b.example": { rate: "1/s", burst: 1 },
    },
    scopes: { "proxy:*": { window: "9/h" } },
  };

  it.each([{ intent: 3 }, 5, { host: 2, intent: 3 }])("to another host cost one unit there, not %j", async (cost) => {
    const site = scriptedSite(priced, (index) =>
      index === 0 ? { status: 302, headers: { location: "https://b.example/" } } : 200,
    );
    const page = await site.polite.fetch("https://a.example/", { politely: { intent: "search", cost } });
    expect(page.url).toBe("https://b.example/");
  });

  it("keep the cost on the same host, and scopes everywhere: a proxy is one for every hop", async () => {
    const site = scriptedSite(priced, (index) =>
      index < 2 ? { status: 302, headers: { location: ["/again", "https://b.example/"][index] } } : 200,
    );
    await site.polite.fetch("https://a.example/", { politely: { scopes: ["proxy:1"], cost: 4 } });
    expect(site.polite.check({ host: "c.example", scopes: ["proxy:1"] }).proceed).toBe(false);
    expect(site.polite.check({ host: "c.example", scopes: ["proxy:2"] }).proceed).toBe(true);
  });
});
