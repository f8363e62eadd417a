import { describe, expect, it } from "vitest";
import { DeadlineError, type PolicyInput, politely, RobotsError } from "../../../src/index.js";
import { type LocalSite, localSite } from "./localSite.js";
import { networkFailure, type Scripted, scriptedSite } from "./scripted.js";

const HTTP = { userAgent: "Archive/2.1 (me@archive.example)", robots: true } as const;
const FAST = { rate: "1000/s", burst: 1000, backoff: "none" } as const;
const SITE = "https://a.example";

/** A site with a robots.txt; everything else answers 200. */
function site(robots: Scripted | ((index: number) => Scripted), policy: PolicyInput = {}) {
  let asked = 0;
  return scriptedSite({ default: FAST, http: HTTP, ...policy }, (_index, { url }) => {
    if (!url.endsWith("/robots.txt")) return 200;
    return typeof robots === "function" ? robots(asked++) : robots;
  });
}

function text(body: string): Scripted {
  return { status: 200, body };
}

function paths(rig: ReturnType<typeof site>): string[] {
  return rig.seen.map(({ url }) => new URL(url).pathname);
}

describe("robots.txt", () => {
  it("is not asked for unless wanted", async () => {
    const rig = scriptedSite({ default: FAST }, () => 200);
    await rig.polite.fetch(`${SITE}/x`);
    expect(paths(rig)).toEqual(["/x"]);
  });

  it("is fetched once per origin and before anything else, however many ask at once", async () => {
    const rig = site(text("User-agent: *\nDisallow: /private"));
    const pages = ["/1", "/2", "/3"].map((path) => rig.polite.fetch(SITE + path));
    const other = rig.polite.fetch("https://b.example/1");
    await Promise.all([...pages, other]);
    expect(paths(rig).filter((path) => path === "/robots.txt")).toHaveLength(2);
    expect(rig.seen.slice(0, 2).every(({ url }) => url.endsWith("/robots.txt"))).toBe(true);
    expect(rig.seen[0].headers.get("user-agent")).toBe(HTTP.userAgent);
  });

  it("that disallows a URL rejects it with RobotsError, naming the line, and takes nothing", async () => {
    const rig = site(text("# hello\nUser-agent: archive\nDisallow: /private"), {
      default: { window: "2/h", backoff: "none" },
    });
    const refused = rig.polite.fetch(`${SITE}/private/x`);
    await expect(refused).rejects.toBeInstanceOf(RobotsError);
    await expect(refused).rejects.toMatchObject({
      code: "POLITELY_ROBOTS",
      key: "a.example",
      url: `${SITE}/private/x`,
      reason: expect.stringContaining("line 3, Disallow: /private"),
    });
    expect(rig.polite.stats("a.example")).toMatchObject({ totalRequests: 1 });
    expect((await rig.polite.fetch(`${SITE}/public`)).ok).toBe(true);
  });

  it("does not deadlock at concurrency 1, and keeps the host's own gap", async () => {
    const rig = site(text(""), { default: { concurrency: 1, minDelay: "2s" } });
    const pages = [rig.polite.fetch(`${SITE}/1`), rig.polite.fetch(`${SITE}/2`)];
    await rig.clock.runToEnd();
    await Promise.all(pages);
    expect(rig.seen.map(({ atMs }) => atMs)).toEqual([0, 2_000, 4_000]);
  });

  it.each([
    ["a Crawl-delay", "User-agent: *\nCrawl-delay: 7", 7_000],
    ["a Request-rate", "User-agent: *\nRequest-rate: 1/5", 5_000],
    ["a shorter Crawl-delay than the own gap", "User-agent: *\nCrawl-delay: 1", 3_000],
  ])("with %s makes the larger of own and asked the gap", async (_name, robots, gapMs) => {
    const rig = site(text(robots), { default: { minDelay: "3s" } });
    const pages = ["/1", "/2", "/3"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.runToEnd();
    await Promise.all(pages);
    const starts = rig.seen.slice(1).map(({ atMs }) => atMs);
    expect(starts.map((at) => at - starts[0])).toEqual([0, gapMs, 2 * gapMs]);
  });

  it("says in explain which line makes it wait", async () => {
    const rig = site(text("User-agent: *\nCrawl-delay: 9"));
    const page = rig.polite.fetch(`${SITE}/1`);
    await rig.clock.advance(10_000);
    await page;
    expect(rig.polite.explain(SITE).causes[0]).toMatchObject({
      limit: "robots",
      because: expect.stringContaining("Crawl-delay: 9"),
    });
  });

  it("with a Crawl-delay beyond maxCrawlDelay is capped, and said so once", async () => {
    const rig = site(text("User-agent: *\nCrawl-delay: 86400"), { http: { ...HTTP, maxCrawlDelay: "10s" } });
    const pages = ["/1", "/2"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.runToEnd();
    await Promise.all(pages);
    expect(rig.seen[2].atMs - rig.seen[1].atMs).toBe(10_000);
    const warnings = rig.events.filter(({ type }) => type === "warn");
    expect(warnings).toMatchObject([{ key: "a.example", message: expect.stringContaining("86400 s") }]);
  });

  it("with a Visit-time is waited for, also when the hours end in the queue", async () => {
    // The virtual clock begins at midnight, UTC.
    const rig = site(text("User-agent: *\nVisit-time: 0600-0601\nCrawl-delay: 50"), { default: { minDelay: 10 } });
    const pages = ["/1", "/2", "/3"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.runToEnd();
    await Promise.all(pages);
    const sixMs = 6 * 3_600_000;
    const day = 86_400_000;
    // On the next day the file is too old, and asked for again first.
    expect(rig.seen.slice(1).map(({ atMs }) => atMs)).toEqual([
      sixMs,
      sixMs + 50_000,
      sixMs + day,
      sixMs + day + 50_000,
    ]);
    expect(paths(rig)).toEqual(["/robots.txt", "/1", "/2", "/robots.txt", "/3"]);
    expect(rig.polite.stats("a.example")).toMatchObject({ inFlight: 0 });
  });

  it("says in explain that the Crawl-delay makes it wait once the hours have begun", async () => {
    const rig = site(text("User-agent: *\nVisit-time: 0600-0700\nCrawl-delay: 50"), { default: { minDelay: 10 } });
    const pages = ["/1", "/2", "/3"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.advance(5 * 3_600_000);
    expect(rig.polite.explain(SITE).causes[0]).toMatchObject({ because: expect.stringContaining("Visit-time") });
    await rig.clock.advance(3_600_000 + 1_000);
    expect(rig.polite.explain(SITE).causes[0]).toMatchObject({ because: expect.stringContaining("Crawl-delay") });
    await rig.clock.runToEnd();
    await Promise.all(pages);
  });

  it("is kept for a day, then asked for again", async () => {
    const rig = site((index) => text(index === 0 ? "" : "User-agent: *\nDisallow: /"));
    await rig.polite.fetch(`${SITE}/1`);
    await rig.clock.advance(23.9 * 3_600_000);
    await rig.polite.fetch(`${SITE}/2`);
    await rig.clock.advance(0.2 * 3_600_000);
    await expect(rig.polite.fetch(`${SITE}/3`)).rejects.toBeInstanceOf(RobotsError);
    expect(paths(rig)).toEqual(["/robots.txt", "/1", "/2", "/robots.txt"]);
  });

  it.each([404, 403, 410, 401])("that answers %i means there are no rules", async (status) => {
    const rig = site(status);
    expect((await rig.polite.fetch(`${SITE}/1`)).ok).toBe(true);
  });

  it.each([
    ["500", 500],
    ["a refused connection", networkFailure("ECONNREFUSED")],
  ])("that cannot be had (%s) means that nothing is allowed, and it is asked again", async (_name, answer) => {
    let isDown = true;
    const rig = site(() => (isDown ? answer : text("")));
    await expect(rig.polite.fetch(`${SITE}/1`)).rejects.toBeInstanceOf(RobotsError);
    await rig.clock.advance(30_000);
    await expect(rig.polite.fetch(`${SITE}/1`)).rejects.toThrow(
      /^https:\/\/a\.example\/1 is not asked for, since robots\.txt of "a\.example" is not known: .*asked for again in 60 s/,
    );
    expect(rig.seen).toHaveLength(1);
    isDown = false;
    await rig.clock.advance(30_000);
    expect((await rig.polite.fetch(`${SITE}/1`)).ok).toBe(true);
  });

  it("that cannot be had any more stays in force as it was", async () => {
    let isDown = false;
    const rig = site(() => (isDown ? 500 : text("User-agent: *\nDisallow: /no")));
    await rig.polite.fetch(`${SITE}/1`);
    isDown = true;
    await rig.clock.advance(48 * 3_600_000);
    expect((await rig.polite.fetch(`${SITE}/2`)).ok).toBe(true);
    await expect(rig.polite.fetch(`${SITE}/no`)).rejects.toThrow("Disallow: /no");
  });

  it("that answers 429 is asked again after its Retry-After, and nothing else is sent meanwhile", async () => {
    const rig = site((index) => (index === 0 ? { status: 429, headers: { "retry-after": "30" } } : text("")));
    const page = rig.polite.fetch(`${SITE}/1`);
    await rig.clock.runToEnd();
    expect((await page).ok).toBe(true);
    expect(paths(rig)).toEqual(["/robots.txt", "/robots.txt", "/1"]);
    expect(rig.seen[1].atMs).toBe(30_000);
  });

  it("that answers 429 for ever is given up after five times", async () => {
    const rig = site({ status: 429, headers: { "retry-after": "30" } });
    const failure = rig.polite.fetch(`${SITE}/1`).catch((error: unknown) => error);
    await rig.clock.runToEnd();
    expect(await failure).toBeInstanceOf(RobotsError);
    expect(rig.seen).toHaveLength(5);
  });

  it("behind redirects is found, each hop paced; five are followed", async () => {
    const moved = (count: number) =>
      scriptedSite({ default: FAST, http: HTTP }, (index, { url }) => {
        if (url.endsWith("/page")) return 200;
        return index < count
          ? { status: 301, headers: { location: `https://h${index}.example/robots.txt` } }
          : text("User-agent: *\nDisallow: /");
      });
    await expect(moved(5).polite.fetch(`${SITE}/page`)).rejects.toBeInstanceOf(RobotsError);
    expect((await moved(6).polite.fetch(`${SITE}/page`)).ok).toBe(true);
  });

  it("does not hold one who gives up, nor stop the others", async () => {
    const rig = site({ status: 200, body: "", latencyMs: 5_000 });
    const controller = new AbortController();
    const one = rig.polite.fetch(`${SITE}/1`, { signal: controller.signal });
    const late = rig.polite.fetch(`${SITE}/2`, { politely: { maxWait: "1s" } });
    const other = rig.polite.fetch(`${SITE}/3`);
    const gaveUp = one.catch((error: unknown) => error);
    const tooLate = late.catch((error: unknown) => error);
    await rig.clock.advance(100);
    const enough = new Error("enough");
    controller.abort(enough);
    expect(await gaveUp).toBe(enough);
    await rig.clock.advance(1_000);
    expect(await tooLate).toBeInstanceOf(DeadlineError);
    await rig.clock.runToEnd();
    expect((await other).ok).toBe(true);
    expect(paths(rig)).toEqual(["/robots.txt", "/3"]);
  });

  it("may be asked for by the program itself", async () => {
    const rig = site(text("User-agent: *\nDisallow: /"));
    expect(await (await rig.polite.fetch(`${SITE}/robots.txt`)).text()).toContain("Disallow");
    expect(rig.seen).toHaveLength(1);
  });

  it("is asked of each host of a redirect", async () => {
    const robotsAt = (text: string, address: string, location: string): Promise<LocalSite> =>
      localSite(address, ({ url }, response) => {
        if (url === "/robots.txt") response.end(text);
        else response.writeHead(302, { location }).end();
      });
    await using there = await robotsAt("User-agent: *\nDisallow: /", "127.0.0.3", "/");
    await using here = await robotsAt("", "127.0.0.2", `${there.origin}/x`);
    const polite = politely({ hosts: { "127.0.0.2": FAST, "127.0.0.3": FAST }, http: HTTP });
    await expect(polite.fetch(`${here.origin}/1`)).rejects.toMatchObject({ name: "RobotsError", key: "127.0.0.3" });
    expect(polite.stats("127.0.0.2")).toMatchObject({ inFlight: 0, totalRequests: 2 });
    expect(there.seen.map(({ url }) => url)).toEqual(["/robots.txt"]);
  });

  it("of a hundred megabytes is read as far as it is looked at", async () => {
    let pulled = 0;
    const line = new TextEncoder().encode("User-agent: *\nDisallow: /no\n".repeat(2_000));
    const endless = new ReadableStream({
      pull(controller) {
        pulled += line.byteLength;
        if (pulled > 100_000_000) controller.close();
        else controller.enqueue(line);
      },
    });
    const polite = politely(
      { default: FAST, http: HTTP },
      { fetch: async (input) => new Response(new Request(input).url.endsWith("/robots.txt") ? endless : "page") },
    );
    await expect(polite.fetch(`${SITE}/no`)).rejects.toBeInstanceOf(RobotsError);
    expect(pulled).toBeLessThan(1_000_000);
  });

  it("turned off by a new policy slows nobody down any more", async () => {
    const rig = site(text("User-agent: *\nCrawl-delay: 50"));
    const first = rig.polite.fetch(`${SITE}/1`);
    await rig.clock.advance(60_000);
    await first;
    rig.polite.configure({ default: FAST });
    const pages = ["/2", "/3"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.advance(100);
    expect((await Promise.all(pages)).every(({ ok }) => ok)).toBe(true);
  });
});
