import { Agent, type Dispatcher, getGlobalDispatcher, setGlobalDispatcher, fetch as undiciFetch } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { limit, type PolicyInput, politely } from "../../../src/index.js";
import type { Limiter } from "../../../src/types.js";
import { type LocalSite, localSite } from "../fetch/localSite.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";

let former: Dispatcher;
beforeEach(() => {
  former = getGlobalDispatcher();
});
afterEach(() => setGlobalDispatcher(former));

/** A limiter that paces the global dispatcher, and so every `fetch` of the program. */
function pacingAll(policy: PolicyInput): Limiter {
  const polite = politely(policy);
  setGlobalDispatcher(new Agent().compose(politeInterceptor(polite)));
  return polite;
}

const one = { hosts: { [HERE]: { concurrency: 1 } } };
const site = (status = 200): Promise<LocalSite> =>
  localSite(HERE, (_request, response) => response.writeHead(status).end("page"));

describe("polite.fetch over a global dispatcher of the same limiter", () => {
  it("is counted once for each hop, also at concurrency 1", async () => {
    await using here = await localSite(HERE, ({ url }, response) => {
      if (url === "/from") response.writeHead(302, { location: "/to" });
      response.end("page");
    });
    const polite = pacingAll(one);
    for (const path of ["/to", "/from"]) {
      expect(await (await polite.fetch(here.origin + path)).text()).toBe("page");
    }
    await polite.idle();
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 3, inFlight: 0 });
    expect(here.seen).toHaveLength(3);
  });

  it("is a start of its own beside that of the task it is called in", async () => {
    await using here = await site();
    const polite = pacingAll({ hosts: { [HERE]: { concurrency: 2 } } });
    const page = await polite.run(here.origin, async () => (await polite.fetch(here.origin)).text());
    expect([page, polite.stats(HERE)?.totalRequests]).toEqual(["page", 2]);
  });
});

describe("a task of run whose requests go through a dispatcher of the same limiter", () => {
  it.each([
    ["the global fetch", fetch],
    ["the fetch of undici", undiciFetch as unknown as typeof fetch],
  ])("is counted once and does not wait for itself: %s", async (_name, send) => {
    await using here = await site();
    const polite = pacingAll(one);
    const page = await polite.run(here.origin, async () => (await send(here.origin)).text());
    const wrapped = polite.wrap((url: string) => url, send);
    const answers = await Promise.all([wrapped(here.origin), wrapped(here.origin)]);
    expect([page, ...(await Promise.all(answers.map((each) => each.text())))]).toEqual(["page", "page", "page"]);
    await polite.idle();
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 3, inFlight: 0 });
  });

  it("gives its permit to the first request of its key, and its later ones wait like any other", async () => {
    await using here = await site();
    await using there = await localSite(THERE, (_request, response) => response.end("page"));
    const polite = pacingAll({ hosts: { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } } });
    await polite.run({ url: here.origin, intent: "search" }, async () => {
      await (await fetch(there.origin)).text();
      await Promise.all([1, 2, 3].map(async () => (await fetch(here.origin)).text()));
    });
    expect(here.peak).toBe(1);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 3, inFlight: 0 });
    expect(polite.stats(THERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
  });

  it("lets a request pass that was admitted further out", async () => {
    await using here = await site();
    const polite: Limiter = politely(
      { ...one, scopes: { "proxy:*": { concurrency: 5 } } },
      { fetch: (input, init) => polite.run({ host: "proxy.example" }, () => fetch(input, init)) },
    );
    setGlobalDispatcher(new Agent().compose(politeInterceptor(polite)));
    expect(await (await polite.fetch(here.origin)).text()).toBe("page");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, inFlight: 0 });
  });

  it("hears one answer once", async () => {
    await using here = await site(429);
    const polite = pacingAll({ hosts: { [HERE]: { concurrency: 1, cooldown: "10s" } } });
    await polite.run(here.origin, () => fetch(here.origin));
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, throttledRequests: 1, inFlight: 0 });
  });

  it("reports what its value says where no request took its permit", async () => {
    const polite = pacingAll(one);
    await polite.run(`http://${HERE}/`, () => ({ status: 429 }));
    expect(polite.stats(HERE)).toMatchObject({ throttledRequests: 1, inFlight: 0 });
  });

  it("lends nothing once it is over or has given its permit back", async () => {
    await using here = await site();
    const polite = pacingAll(one);
    let later: Promise<string> | undefined;
    await polite.run(here.origin, (permit) => {
      later = new Promise((resolve) => setTimeout(resolve, 5)).then(async () => (await fetch(here.origin)).text());
      permit.release("unused");
    });
    await later;
    await polite.run(here.origin, async (permit) => {
      permit.release("unused");
      await (await fetch(here.origin)).text();
    });
    expect(here.seen).toHaveLength(2);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 4, inFlight: 0 });
  });

  it("works for a limiter of one key", async () => {
    await using here = await site();
    const polite = limit({ concurrency: 1 });
    setGlobalDispatcher(new Agent().compose(politeInterceptor(polite)));
    expect(await polite.run(async () => (await fetch(here.origin)).text())).toBe("page");
    expect(polite.stats()).toMatchObject({ totalRequests: 1, inFlight: 0 });
  });

  it("obeys robots.txt, which run itself does not ask for", async () => {
    await using here = await localSite(HERE, ({ url }, response) =>
      response.end(url === "/robots.txt" ? "User-agent: *\nDisallow: /no" : "page"),
    );
    const polite = pacingAll({ ...one, http: { userAgent: "Archive/1", robots: true } });
    const get = getter(polite, here.origin);
    const [yes, no, again] = await Promise.allSettled([get("/yes"), get("/no"), get("/again")]);
    expect([yes, again]).toMatchObject([{ value: "page" }, { value: "page" }]);
    expect(no).toMatchObject({ reason: { cause: { code: "POLITELY_ROBOTS" } } });
    expect(here.seen.map(({ url }) => url).sort()).toEqual(["/again", "/robots.txt", "/yes"]);
    expect(here.peak).toBe(1);
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
    expect(await get("/robots.txt")).toContain("Disallow");
  });

  it("keeps its permit where robots.txt is known", async () => {
    await using here = await localSite(HERE, ({ url }, response) =>
      response.end(url === "/robots.txt" ? "User-agent: *\nDisallow: /no" : "page"),
    );
    const polite = pacingAll({ ...one, http: { userAgent: "Archive/1", robots: true } });
    let underway = 0;
    let most = 0;
    const get = getter(polite, here.origin, () => {
      most = Math.max(most, ++underway);
    });
    const paths = Array.from({ length: 20 }, (_, index) => `/${index}`);
    for (const some of [paths.slice(0, 1), paths.slice(1)]) {
      await Promise.all(some.map((path) => get(path).finally(() => --underway)));
    }
    expect(here.seen.map(({ url }) => url)).toEqual(["/robots.txt", ...paths]);
    // The next one may begin with the last byte of the one before.
    expect(most).toBeLessThanOrEqual(2);
    await expect(get("/no")).rejects.toThrow();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
  });
});

/** Gets paths of a site by the global fetch, each in a task of its own. */
function getter(polite: Limiter, origin: string, begun: () => void = () => undefined) {
  return polite.wrap(
    (path: string) => `${origin}${path}`,
    async (path) => {
      begun();
      return (await fetch(`${origin}${path}`)).text();
    },
  );
}
