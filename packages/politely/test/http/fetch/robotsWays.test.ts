import { describe, expect, it } from "vitest";
import { DeadlineError, type PolicyInput, politely, RobotsError } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import type { PoliteRequestInit } from "../../../src/types.js";
import { networkFailure, type Scripted, scriptedSite } from "./scripted.js";

const HTTP = { userAgent: "Archive/2.1", robots: true } as const;
const FAST = { rate: "1000/s", burst: 1000, backoff: "none" } as const;
const SITE = "https://a.example";

/** A site with a robots.txt; everything else answers 200. */
function site(robots: Scripted, policy: PolicyInput = {}) {
  return scriptedSite({ default: FAST, http: HTTP, ...policy }, (_index, { url }) =>
    new URL(url).pathname === "/robots.txt" ? robots : 200,
  );
}

/** What a page on it comes to. */
async function outcome(rig: ReturnType<typeof site>, path = "/1"): Promise<unknown> {
  const page = rig.polite.fetch(SITE + path).then(
    ({ status }) => status,
    (error: unknown) => error,
  );
  await rig.clock.advance(3_600_000);
  return page;
}

describe("a robots.txt that redirects nowhere means that the site has no rules", () => {
  it.each([
    "http://",
    "ftp://a.example/robots.txt",
    "https://a.example:99999/",
    "data:text/plain,x",
    "https://user:secret@a.example/rules",
  ])("%s", async (location) => {
    expect(await outcome(site({ status: 302, headers: { location } }))).toBe(200);
  });
});

describe("a refusal without rules", () => {
  it("says what went wrong, not only that something did", async () => {
    const error = await outcome(site(networkFailure("ECONNREFUSED")));
    expect(error).toMatchObject({ reason: expect.stringContaining("(ECONNREFUSED)") });
  });

  it("after many answers of 429 does not say that the site forbids the URL", async () => {
    const error = await outcome(site(429, { hosts: { "a.example": { enabled: false } } }));
    expect(error).toBeInstanceOf(RobotsError);
    expect(String(error)).toMatch(/is not known.*5 times/);
    expect(String(error)).not.toContain("does not allow");
  });
});

describe("a URL at /robots.txt", () => {
  it("is asked about like any other when it has a query", async () => {
    const rig = site({ status: 200, body: "User-agent: *\nDisallow: /" });
    expect(await outcome(rig, "/robots.txt?page=1")).toBeInstanceOf(RobotsError);
    expect(await outcome(rig, "/robots.txt")).toBe(200);
    expect(await outcome(rig, "/robots.txt#top")).toBe(200);
  });
});

describe("robots.txt goes the way of the request it is asked for", () => {
  it("through its dispatcher, also behind a redirect", async () => {
    const dispatcher = { name: "proxy" };
    const clock = new VirtualClock();
    const ways: [string, unknown][] = [];
    const polite = politely(
      { default: FAST, http: HTTP },
      {
        clock,
        fetch: async (input, init) => {
          const { url } = new Request(input);
          ways.push([new URL(url).pathname, (init as { dispatcher?: unknown } | undefined)?.dispatcher]);
          if (!url.endsWith("/robots.txt")) return new Response("");
          return new Response(null, { status: 302, headers: { location: "/rules" } });
        },
      },
    );
    const page = polite.fetch(`${SITE}/1`, { dispatcher } as PoliteRequestInit);
    await clock.runToEnd();
    await page;
    expect(ways).toEqual([
      ["/robots.txt", dispatcher],
      ["/rules", dispatcher],
      ["/1", dispatcher],
    ]);
  });

  it("but who waits for it too does not fail for the scopes of the first", async () => {
    const rig = site({ status: 200, body: "" }, { scopes: { "proxy:*": { window: "1/h", maxWait: 0 } } });
    rig.polite.tryAcquire({ host: "b.example", scopes: ["proxy:1"] })?.release();
    const first = rig.polite.fetch(`${SITE}/1`, { politely: { scopes: ["proxy:1"] } });
    const others = [2, 3].map((page) => rig.polite.fetch(`${SITE}/${page}`));
    await expect(first).rejects.toBeInstanceOf(DeadlineError);
    await rig.clock.runToEnd();
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200]);
    expect(rig.seen.map(({ url }) => new URL(url).pathname)).toEqual(["/robots.txt", "/2", "/3"]);
  });

  it("and counts in its scopes", async () => {
    const rig = site({ status: 200, body: "" }, { scopes: { "proxy:*": { window: "2/min" } } });
    const init = { politely: { scopes: ["proxy:1"] } };
    const pages = [1, 2].map((page) => rig.polite.fetch(`${SITE}/${page}`, init));
    await rig.clock.runToEnd();
    await Promise.all(pages);
    expect(rig.seen.map(({ url, atMs }) => [new URL(url).pathname, atMs])).toEqual([
      ["/robots.txt", 0],
      ["/1", 0],
      ["/2", 60_000],
    ]);
  });
});
