import { createHash } from "node:crypto";
import { Agent, Request as UndiciRequest, fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { type FetchOptions, politely } from "../../../src/index.js";
import { type LocalSite, localSite } from "./localSite.js";
import { scriptedSite } from "./scripted.js";

const HERE = "127.0.0.2";
const NAMED = { [HERE]: { concurrency: 1 } };
const WIDE = { rate: "100/s", burst: 100 } as const;

/** A site whose /moved leads to /end, with what it saw as text. */
function movingSite(): Promise<LocalSite> {
  return localSite(HERE, ({ url }, response) => {
    if (url === "/moved") response.writeHead(307, { location: "/end" }).end("moved");
    else response.end("end");
  });
}

/** What the site saw of requests that should look alike. */
function lines({ seen }: LocalSite): string[] {
  return seen.map(({ method, url, headers, body }) => `${method} ${url} ${String(headers["x-a"] ?? "-")} ${body}`);
}

describe("an init of fetch", () => {
  it("may be a Request, as for the platform's own fetch", async () => {
    await using site = await movingSite();
    const { fetch } = politely({ hosts: NAMED });
    const init = () => new Request(`${site.origin}/other`, { method: "POST", body: "text", headers: { "x-a": "1" } });
    for (const send of [globalThis.fetch, fetch]) await (await send(`${site.origin}/end`, init())).text();
    expect(lines(site)).toEqual(["POST /end 1 text", "POST /end 1 text"]);
  });

  it("may have its members from a class or from defaults it inherits", async () => {
    class Init {
      get method(): string {
        return "POST";
      }
      get body(): string {
        return "text";
      }
      get politely(): FetchOptions {
        return { maxWait: 0 };
      }
    }
    const inherited: RequestInit = Object.create({ method: "PUT", body: "more", headers: { "x-a": "1" } });
    const site = scriptedSite({ default: WIDE }, () => 200);
    await site.polite.fetch("https://a.example/", new Init());
    await site.polite.fetch("https://a.example/", inherited);
    expect(site.seen.map(({ method, body }) => `${method} ${body}`)).toEqual(["POST text", "PUT more"]);
    expect(site.seen[1].headers.get("x-a")).toBe("1");
    site.polite.pause("a.example");
    await expect(site.polite.fetch("https://a.example/", new Init())).rejects.toMatchObject({
      code: "POLITELY_DEADLINE",
    });
  });

  it("that is no object is an error before anything is taken", async () => {
    const site = scriptedSite({ default: { window: "1/h" } }, () => 200);
    await expect(site.polite.fetch("https://a.example/", "POST" as RequestInit)).rejects.toThrow(
      'init must be an object; got "POST"',
    );
    expect(site.polite.check("a.example").proceed).toBe(true);
  });

  it("may be null, and so may its members", async () => {
    const site = scriptedSite({ default: WIDE }, () => 200);
    await site.polite.fetch("https://a.example/", null as unknown as RequestInit);
    await site.polite.fetch("https://a.example/", { body: null, signal: null });
    await site.polite.fetch(new Request("https://a.example/", { signal: AbortSignal.abort() }), { signal: null });
    expect(site.seen).toHaveLength(3);
  });

  it("whose body is null leaves a Request its own, also after a redirect", async () => {
    await using site = await movingSite();
    const polite = politely({ hosts: NAMED });
    const request = new Request(`${site.origin}/moved`, { method: "POST", body: "text" });
    await (await polite.fetch(request, { body: null })).text();
    expect(lines(site)).toEqual(["POST /moved - text", "POST /end - text"]);
  });
});

/** Counts what goes through it. */
class CountingAgent extends Agent {
  count = 0;

  override dispatch(...args: Parameters<Agent["dispatch"]>): boolean {
    this.count += 1;
    return super.dispatch(...args);
  }
}

/** From undici 7 on, which Node 24 has, nobody can see the dispatcher of a Request. */
const isHidden = !Object.getOwnPropertySymbols(new Request("https://a.example/")).some(
  ({ description }) => description === "dispatcher",
);

describe("what a Request carries", () => {
  it.each<[RequestRedirect, string, (request: Request) => unknown]>([
    ["follow", "read", (request) => request.text()],
    ["manual", "read", (request) => request.text()],
    ["follow", "taken by a reader", (request) => request.body?.getReader()],
    ["manual", "taken by a reader", (request) => request.body?.getReader()],
  ])("cannot be sent with redirect %s when its body was %s, and takes no turn", async (redirect, _how, use) => {
    const polite = politely({ default: WIDE });
    const request = new Request("https://a.example/", { method: "POST", body: "text", redirect });
    await use(request);
    await expect(polite.fetch(request)).rejects.toThrow(TypeError);
    expect(polite.stats("a.example")).toBeUndefined();
  });

  it.skipIf(isHidden)("includes its dispatcher, for redirects and repetitions", async () => {
    await using site = await movingSite();
    const dispatcher = new CountingAgent();
    const polite = politely({ hosts: NAMED });
    const init = { method: "POST", body: "text", dispatcher } as unknown as RequestInit;
    await (await polite.fetch(new Request(`${site.origin}/moved`, init))).text();
    expect([dispatcher.count, site.seen.length]).toEqual([2, 2]);
    await dispatcher.close();

    await using weak = await localSite(HERE, (_request, response, index) => {
      response.writeHead(index === 0 ? 500 : 200).end();
    });
    const again = new CountingAgent();
    const retry = { attempts: 2, delay: 1, methods: ["POST"] };
    const patient = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "none" } }, http: { retry } });
    const repeated = { ...init, dispatcher: again } as RequestInit;
    expect((await patient.fetch(new Request(weak.origin, repeated))).status).toBe(200);
    expect([again.count, weak.seen.length]).toEqual([2, 2]);
    await again.close();
  });

  it("includes the dispatcher that init has beside it, whichever undici made the Request", async () => {
    await using site = await movingSite();
    const dispatcher = new CountingAgent();
    const polite = politely({ hosts: NAMED }, { fetch: undiciFetch });
    const request = new UndiciRequest(`${site.origin}/moved`) as unknown as Request;
    await (await polite.fetch(request, { dispatcher } as RequestInit)).text();
    expect(dispatcher.count).toBe(2);
    await dispatcher.close();
  });
});

describe("integrity", () => {
  const hash = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

  it("is that of the last answer", async () => {
    await using site = await movingSite();
    const polite = politely({ hosts: NAMED });
    const url = `${site.origin}/moved`;
    for (const page of [
      await polite.fetch(url, { integrity: hash("end") }),
      await polite.fetch(new Request(url, { integrity: hash("end") })),
    ]) {
      expect([await page.text(), page.redirected, page.url]).toEqual(["end", true, `${site.origin}/end`]);
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 4, inFlight: 0 });
  });

  it("that does not match says nothing about the host, and what was sent is not given back", async () => {
    await using site = await movingSite();
    const polite = politely({ hosts: { [HERE]: { window: "4/h" } } });
    await expect(polite.fetch(`${site.origin}/moved`, { integrity: hash("other") })).rejects.toThrow(TypeError);
    await expect(polite.fetch(new Request(`${site.origin}/moved`, { integrity: hash("other") }))).rejects.toThrow();
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 4, inFlight: 0, cooldownMs: 0 });
    expect(polite.check(HERE).proceed).toBe(false);
  });
});

describe("a URL that leads to no host", () => {
  it.each(["data:,hello", " DATA:,hello"])("is the platform's own affair, unpaced: %s", async (url) => {
    const polite = politely({ default: { window: "1/h" } });
    for (const input of [url, new URL(url), new Request(url)]) {
      const page = await polite.fetch(input, { politely: { maxWait: 0 } });
      expect(await page.text()).toBe("hello");
    }
    expect(polite.stats()).toEqual([]);
  });

  it("may be that of a blob", async () => {
    const url = URL.createObjectURL(new Blob(["hello"]));
    expect(await (await politely().fetch(url)).text()).toBe("hello");
    URL.revokeObjectURL(url);
  });

  it.each(["about:blank", "ftp://x.example/", "localhost:80/"])("fails as the platform has it: %s", async (url) => {
    const own = await fetch(url).catch((error: Error) => error.cause);
    const error = await politely()
      .fetch(url)
      .catch((reason: Error) => reason.cause);
    expect(error).toEqual(own);
    expect(error).toBeInstanceOf(Error);
  });

  it("still has its scheme in any case, and blanks before it, where it is http", async () => {
    const site = scriptedSite({ default: WIDE }, () => 200);
    await site.polite.fetch("HTTPS://a.example/");
    await site.polite.fetch(" https://a.example/");
    expect(site.polite.stats("a.example")?.totalRequests).toBe(2);
  });
});
