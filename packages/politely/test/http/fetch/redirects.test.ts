import { describe, expect, it } from "vitest";
import { nextHop } from "../../../src/http/redirect.js";
import { DeadlineError, type LimiterEvent, type PolicyInput, politely } from "../../../src/index.js";
import { type LocalSite, localSite } from "./localSite.js";
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

/** When requests to a key were granted. */
function startsAt(events: readonly LimiterEvent[]): number[] {
  return events.flatMap((event) => (event.type === "grant" ? [event.atMs] : []));
}

/** Leads from each path to the next one of `way`, and says "end" at the last. */
function leading(address: string, way: readonly string[], status = 302): Promise<LocalSite> {
  return localSite(address, ({ url }, response) => {
    const location = way[way.indexOf(url) + 1];
    if (location === undefined) response.end("end");
    else response.writeHead(status, { location }).end("moved");
  });
}

describe("redirects and rest", () => {
  it("idle waits for the hop that comes next", async () => {
    await using site = await leading(HERE, ["/", "/next", "/last"]);
    const polite = politely({ hosts: { [HERE]: { minDelay: 20 } } });
    const page = polite.fetch(site.origin);
    await polite.idle();
    expect([site.seen.length, polite.stats(HERE)?.inFlight]).toEqual([3, 0]);
    expect(await (await page).text()).toBe("end");
    const manual = await polite.fetch(site.origin, { redirect: "manual" });
    await polite.idle();
    expect(manual.status).toBe(302);
  });

  it("idle waits for the page that waits for robots.txt", async () => {
    const site = scriptedSite({ default: { minDelay: "1s" }, http: { userAgent: "Test/1.0", robots: true } }, () => ({
      status: 200,
      body: "User-agent: *\nAllow: /",
    }));
    const page = site.polite.fetch("https://a.example/");
    let restedAtMs = -1;
    void site.polite.idle().then(() => {
      restedAtMs = site.clock.now();
    });
    await site.clock.runToEnd();
    await (await page).text();
    expect(restedAtMs).toBe(1_000);
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
    await using site = await leading(HERE, ["/", "/0", "/1", "/2"]);
    const polite = politely({ hosts: { [HERE]: { minDelay: 30, concurrency: 1 } } });
    const events: LimiterEvent[] = [];
    polite.subscribe((event) => events.push(event));
    const page = await polite.fetch(site.origin);
    expect([page.url, await page.text()]).toEqual([`${site.origin}/2`, "end"]);
    const starts = startsAt(events);
    expect(starts.slice(1).map((atMs, index) => atMs - starts[index] > 29.999)).toEqual([true, true, true]);
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

  it("refuse to send a stream twice, and take no turn at the next host", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end());
    await using here = await localSite(HERE, (_request, response) => {
      response.writeHead(307, { location: there.origin }).end();
    });
    const polite = politely({ hosts: NAMED });
    const init = { method: "POST", body: new Blob(["x"]).stream(), duplex: "half" } as RequestInit;
    await expect(polite.fetch(here.origin, init)).rejects.toThrow("fetch failed");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0, cooldownMs: 0 });
    expect(polite.stats(THERE)).toBeUndefined();
  });

  it("end after 20, the place free and every hop counted", async () => {
    await using site = await localSite(HERE, (_request, response) => response.writeHead(302, { location: "/" }).end());
    const polite = politely({ hosts: NAMED });
    await expect(polite.fetch(site.origin)).rejects.toMatchObject({ cause: { message: "redirect count exceeded" } });
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 21, inFlight: 0 });
  });

  it("that the limiter refuses fail with its own error", async () => {
    await using site = await leading(HERE, ["/", "/next"]);
    const polite = politely({ hosts: { [HERE]: { window: "1/h", maxWait: "1s" } } });
    await expect(polite.fetch(site.origin)).rejects.toBeInstanceOf(DeadlineError);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, refused: 1, inFlight: 0 });
  });

  it("free the place of a hop although its body never ends", async () => {
    await using site = await localSite(HERE, ({ url }, response) => {
      if (url === "/next") response.end("end");
      else response.writeHead(302, { location: "/next" }).write("endless");
    });
    const polite = politely({ hosts: NAMED });
    expect(await (await polite.fetch(site.origin)).text()).toBe("end");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
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
    await using there = await localSite(THERE, (_request, response) => {
      response.writeHead(429, { "retry-after": "30" }).end();
    });
    await using here = await leading(HERE, ["/", there.origin]);
    const polite = politely({ hosts: NAMED });
    expect((await polite.fetch(here.origin)).status).toBe(429);
    expect(polite.check(THERE).waitMs).toBeGreaterThan(29_000);
    expect(polite.check(HERE).proceed).toBe(true);
  });

  it("are followed by any other fetch on its own: one start at the first host", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end("end"));
    await using here = await leading(HERE, ["/", there.origin]);
    const own = globalThis.fetch;
    const polite = politely({ hosts: NAMED }, { fetch: (input, init) => own(input, init) });
    const page = await polite.fetch(here.origin);
    expect([page.url, page.redirected, await page.text()]).toEqual([`${there.origin}/`, true, "end"]);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
    expect(polite.stats(THERE)).toBeUndefined();
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

  const priced: PolicyInput = {
    hosts: {
      [HERE]: { rate: "9/s", burst: 9, intents: { search: { rate: "9/s", burst: 9 } } },
      [THERE]: { rate: "1/s", burst: 1 },
    },
    scopes: { "proxy:*": { window: "9/h" } },
  };

  it.each([{ intent: 3 }, 5, { host: 2, intent: 3 }])("to another host cost one unit there, not %j", async (cost) => {
    await using there = await localSite(THERE, (_request, response) => response.end());
    await using here = await leading(HERE, ["/", there.origin]);
    const page = await politely(priced).fetch(here.origin, { politely: { intent: "search", cost } });
    expect(page.url).toBe(`${there.origin}/`);
  });

  it("keep the cost on the same host, and scopes everywhere: a proxy is one for every hop", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end());
    await using here = await leading(HERE, ["/", "/again", there.origin]);
    const polite = politely(priced);
    await polite.fetch(here.origin, { politely: { scopes: ["proxy:1"], cost: 4 } });
    expect(polite.check({ host: "c.example", scopes: ["proxy:1"] }).proceed).toBe(false);
    expect(polite.check({ host: "c.example", scopes: ["proxy:2"] }).proceed).toBe(true);
  });
});
