import { describe, expect, it } from "vitest";
import { exchangeOf } from "../../../src/http/exchange.js";
import { RobotsGate } from "../../../src/http/robotsGate.js";
import { DeadlineError, type Duration, type PolicyInput, RobotsError } from "../../../src/index.js";
import { type Scripted, scriptedSite } from "./scripted.js";

/** So short that only robots.txt is felt. A gap of its own goes back whole with a start that was not used. */
const FAST = { minDelay: 10, backoff: "none" } as const;
const AT_ONCE = { rate: "1000/s", burst: 1000, backoff: "none" } as const;
const SITE = "https://a.example";
const SHUT = "https://shut.example";
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

function http(maxAge: Duration = "1d") {
  return { userAgent: "Archive/2.1 (me@archive.example)", robots: { maxAge } } as const;
}

/** A site with a robots.txt, which is given how often it was asked for; everything else answers 200. */
function site(robots: (index: number) => string, policy: PolicyInput = {}, latencyMs = 0) {
  let asked = 0;
  return scriptedSite({ default: FAST, http: http(), ...policy }, (_index, { url }): Scripted => {
    if (!url.endsWith("/robots.txt")) return 200;
    return { status: 200, body: robots(asked++), latencyMs };
  });
}

type Rig = ReturnType<typeof site>;

function log({ seen }: Rig): [string, number][] {
  return seen.map(({ url, atMs }) => [new URL(url).pathname, atMs]);
}

/** When the pages of the site were asked for. */
function starts({ seen }: Rig): number[] {
  return seen.filter(({ url }) => url.startsWith(SITE) && !url.endsWith("/robots.txt")).map(({ atMs }) => atMs);
}

function gaps(instants: readonly number[]): number[] {
  return instants.slice(1).map((atMs, index) => atMs - instants[index]);
}

/** Asks for that many pages at once, and says what becomes of each: its status, or the error. */
function ask({ polite }: Rig, count: number, first = 1): Promise<unknown[]> {
  const pages = Array.from({ length: count }, (_, index) => polite.fetch(`${SITE}/${first + index}`));
  return Promise.all(pages.map((page) => page.then(({ status }) => status).catch((error: unknown) => error)));
}

function pathsFrom(first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `/${first + index}`);
}

describe("a robots.txt that changes while requests wait", () => {
  const closing = (index: number) => (index === 0 ? "" : "User-agent: *\nDisallow: /");
  const perMinute = { default: { minDelay: "1m", backoff: "none" } } as const;

  it("is read when the copy is too old, and what it disallows is refused and takes nothing", async () => {
    const rig = site(closing, { ...perMinute, http: http("10m") });
    const outcomes = ask(rig, 30);
    await rig.clock.runToEnd();
    const rest = (await outcomes).slice(9);
    expect(log(rig).map(([path]) => path)).toEqual(["/robots.txt", ...pathsFrom(1, 9), "/robots.txt"]);
    expect(rest.every((outcome) => outcome instanceof RobotsError)).toBe(true);
    expect(rig.seen.at(-1)?.atMs).toBe(10 * MINUTE_MS);
    expect(rig.polite.stats(SITE)).toMatchObject({ inFlight: 0, waiting: 0 });
    // Had they taken anything, they would have been refused a minute apart.
    expect(rig.clock.now()).toBe(11 * MINUTE_MS);
  });

  it("is obeyed by those in the queue when a newcomer makes it read", async () => {
    let isShut = false;
    const rig = site(() => (isShut ? "User-agent: *\nDisallow: /" : ""), { ...perMinute, http: http("10m") });
    const outcomes = ask(rig, 30);
    await rig.clock.advance(9.5 * MINUTE_MS);
    isShut = true;
    await rig.clock.advance(MINUTE_MS);
    const newcomer = ask(rig, 1, 31);
    await rig.clock.runToEnd();
    const readMs = rig.seen.findLast(({ url }) => url.endsWith("/robots.txt"))?.atMs ?? 0;
    expect(readMs).toBeGreaterThan(0);
    expect(starts(rig).filter((atMs) => atMs > readMs)).toEqual([]);
    expect(await newcomer).toMatchObject([{ code: "POLITELY_ROBOTS" }]);
    expect((await outcomes).filter((outcome) => outcome === 200)).toHaveLength(starts(rig).length);
  });

  it("makes those in the queue slower when it asks for a longer gap", async () => {
    const rig = site((index) => `User-agent: *\nCrawl-delay: ${index === 0 ? 10 : 40}`, { http: http("100s") });
    const outcomes = ask(rig, 14);
    await rig.clock.runToEnd();
    await outcomes;
    const [, readMs] = log(rig).flatMap(([path, atMs]) => (path === "/robots.txt" ? [atMs] : []));
    expect(readMs).toBe(100_000);
    const all = rig.seen.map(({ atMs }) => atMs).filter((atMs) => atMs >= readMs);
    expect(Math.min(...gaps(all))).toBe(40_000);
  });
});

describe("a copy of robots.txt", () => {
  it("serves a long queue for no more than a day", async () => {
    const rig = site(() => "User-agent: *\nCrawl-delay: 600", { http: { ...http(), maxCrawlDelay: "10m" } });
    const outcomes = ask(rig, 200);
    await rig.clock.runToEnd();
    expect((await outcomes).every((outcome) => outcome === 200)).toBe(true);
    let readMs = Number.NEGATIVE_INFINITY;
    let oldestMs = 0;
    for (const [path, atMs] of log(rig)) {
      if (path === "/robots.txt") readMs = atMs;
      else oldestMs = Math.max(oldestMs, atMs - readMs);
    }
    expect(oldestMs).toBeLessThan(24 * HOUR_MS);
    expect(rig.seen).toHaveLength(202);
    expect(new Set(gaps(rig.seen.map(({ atMs }) => atMs)))).toEqual(new Set([10 * MINUTE_MS]));
    expect(log(rig).flatMap(([path]) => (path === "/robots.txt" ? [] : [path]))).toEqual(pathsFrom(1, 200));
    // The file is asked for a little ahead, so that nobody has to give a turn back for it.
    expect(rig.events.filter((event) => event.type === "release" && event.outcome === "unused")).toEqual([]);
  });

  it("that lasts for less than a turn is read once for each page, and nobody loses his turn", async () => {
    const rig = site(() => "User-agent: *\nCrawl-delay: 60", { http: http("10s") });
    const outcomes = ask(rig, 4);
    await rig.clock.runToEnd();
    expect(await outcomes).toEqual([200, 200, 200, 200]);
    const paths = log(rig).map(([path]) => path);
    expect(paths.filter((path) => path !== "/robots.txt")).toEqual(pathsFrom(1, 4));
    expect(paths.slice(1)).toEqual(pathsFrom(1, 4).flatMap((path) => ["/robots.txt", path]));
    expect(new Set(gaps(rig.seen.map(({ atMs }) => atMs)))).toEqual(new Set([MINUTE_MS]));
  });

  it("that lasts for no time at all is read once for a page that need not wait", async () => {
    const rig = site(() => "", { default: AT_ONCE, http: http("0s") });
    await ask(rig, 1);
    await ask(rig, 1, 2);
    expect(log(rig).map(([path]) => path)).toEqual(["/robots.txt", "/1", "/robots.txt", "/2"]);
  });

  it("is renewed at concurrency 1 without a deadlock", async () => {
    const policy = { default: { concurrency: 1, minDelay: "1m" }, http: http("3m") } as const;
    const rig = site(() => "", policy, 5_000);
    const outcomes = ask(rig, 12);
    await rig.clock.runToEnd();
    expect(await outcomes).toEqual(Array.from({ length: 12 }, () => 200));
    expect(rig.seen.length).toBeGreaterThan(14);
    expect(rig.polite.stats(SITE)).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it("that is renewed slowly while many could start keeps their order and sends them round once", async () => {
    const policy = { default: { rate: "10/s", burst: 1, backoff: "none" }, http: http("1m") } as const;
    const rig = site(() => "", policy, 1_500);
    await ask1(rig);
    rig.polite.pause(SITE);
    const outcomes = ask(rig, 300, 2);
    await rig.clock.advance(2 * MINUTE_MS);
    rig.polite.resume(SITE);
    await rig.clock.runToEnd();
    expect((await outcomes).every((outcome) => outcome === 200)).toBe(true);
    expect(log(rig).flatMap(([path]) => (path === "/robots.txt" ? [] : [path]))).toEqual(pathsFrom(1, 301));
    expect(rig.events.filter(({ type }) => type === "grant").length).toBeLessThanOrEqual(2 * rig.seen.length);
  });

  it("that is too old does not stretch anybody's maxWait", async () => {
    const rig = site(() => "", { default: { minDelay: "1m" }, http: http("30s") });
    const page = rig.polite.fetch(`${SITE}/1`, { politely: { maxWait: "100s" } });
    const failure = page.catch((error: unknown) => error);
    await rig.clock.runToEnd();
    expect(await failure).toBeInstanceOf(DeadlineError);
    expect(starts(rig)).toEqual([]);
    expect(rig.clock.now()).toBeLessThanOrEqual(100_000);
    expect(rig.polite.stats(SITE)).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it("is not asked for ahead of time when nobody else waits", async () => {
    const rig = site(() => "", { http: http("10m") });
    await ask1(rig);
    await rig.clock.advance(9.5 * MINUTE_MS);
    await ask(rig, 1, 2);
    await rig.clock.runToEnd();
    expect(log(rig).map(([path]) => path)).toEqual(["/robots.txt", "/1", "/2"]);
  });
});

describe("more sites than are kept", () => {
  const MAX_SITES = 20;

  /** Sites of which one has a Crawl-delay and one has hours; only few are kept. */
  function crowd() {
    const rig = scriptedSite({ default: AT_ONCE, http: http() }, (_index, { url }) => {
      if (!url.endsWith("/robots.txt")) return 200;
      if (url.startsWith(SITE)) return { status: 200, body: "User-agent: *\nCrawl-delay: 60" };
      return url.startsWith(SHUT) ? { status: 200, body: "User-agent: *\nVisit-time: 0600-0700" } : 404;
    });
    const exchange = exchangeOf(rig.polite, "A test");
    const { gate } = exchange;
    if (!(gate instanceof RobotsGate)) throw new Error("There is no gate.");
    exchange.gate = new RobotsGate(exchange, gate.send, MAX_SITES);
    const visitOthers = async (): Promise<void> => {
      for (let index = 0; index <= MAX_SITES; index++) await rig.polite.fetch(`https://n${index}.example/`);
    };
    return { ...rig, visitOthers };
  }

  it("do not end the Crawl-delay and the hours of those that have a queue", async () => {
    const rig = crowd();
    const outcomes = ask(rig, 12);
    const shut = rig.polite.fetch(`${SHUT}/1`);
    await rig.clock.advance(200_000);
    await rig.visitOthers();
    await rig.clock.runToEnd();
    expect((await shut).ok).toBe(true);
    expect(await outcomes).toHaveLength(12);
    expect(starts(rig)).toHaveLength(12);
    expect(new Set(gaps(starts(rig)))).toEqual(new Set([MINUTE_MS]));
    expect(rig.seen.find(({ url }) => url === `${SHUT}/1`)?.atMs).toBe(6 * HOUR_MS);
    expect(rig.seen.filter(({ url }) => url === `${SITE}/robots.txt`)).toHaveLength(1);
  });

  it("make a site without a queue forgotten, but not the gap after its last request", async () => {
    const rig = crowd();
    const first = ask(rig, 1);
    await rig.clock.advance(MINUTE_MS);
    await first;
    await rig.visitOthers();
    const second = ask(rig, 1, 2);
    await rig.clock.runToEnd();
    expect(await second).toEqual([200]);
    const own = rig.seen
      .filter(({ url }) => url.startsWith(SITE))
      .map(({ url, atMs }) => [url.slice(SITE.length), atMs]);
    expect(own).toEqual([
      ["/robots.txt", 0],
      ["/1", MINUTE_MS],
      ["/robots.txt", 2 * MINUTE_MS],
      ["/2", 3 * MINUTE_MS],
    ]);
  });
});

/** One page, which need not wait. */
async function ask1(rig: Rig): Promise<void> {
  const page = ask(rig, 1);
  await rig.clock.advance(10_000);
  await page;
}

// The virtual clock begins at midnight, UTC.
describe("a Request-rate with hours", () => {
  it("slows down those who wait already when the hours begin", async () => {
    const rig = site(() => "User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/60s 0001-1700");
    const outcomes = ask(rig, 70);
    await rig.clock.runToEnd();
    await outcomes;
    const instants = starts(rig);
    const before = instants.filter((atMs) => atMs < MINUTE_MS);
    expect(new Set(gaps(before))).toEqual(new Set([1_000]));
    expect(before.at(-1)).toBe(59_000);
    expect(new Set(gaps(instants.slice(before.length - 1)))).toEqual(new Set([MINUTE_MS]));
    expect(rig.polite.stats(SITE)).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it("lets go of those who wait as soon as the hours end", async () => {
    const rig = site(() => "User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1h 0000-0130", {
      http: { ...http(), maxCrawlDelay: "2h" },
    });
    const outcomes = ask(rig, 5);
    await rig.clock.runToEnd();
    await outcomes;
    const endMs = 1.5 * HOUR_MS;
    expect(starts(rig)).toEqual([HOUR_MS, endMs, endMs + 1_000, endMs + 2_000, endMs + 3_000]);
  });

  it.each([0, 5_000])(
    "holds all but one of many that could start as the hours begin, after a stall of %i ms",
    async (ms) => {
      const rig = site(() => "User-agent: *\nRequest-rate: 1/60s 0001-1700", {
        default: { window: "10/m", backoff: "none" },
      });
      const outcomes = ask(rig, 20);
      await rig.clock.advance(59_000);
      expect(starts(rig)).toHaveLength(9);
      if (ms > 0) rig.clock.stall(ms);
      await rig.clock.runToEnd();
      await outcomes;
      const within = starts(rig).slice(9);
      expect(within).toHaveLength(11);
      expect(within[0]).toBeGreaterThanOrEqual(MINUTE_MS);
      expect(Math.min(...gaps(within))).toBe(MINUTE_MS);
      expect(
        log(rig)
          .slice(1)
          .map(([path]) => path),
      ).toEqual(pathsFrom(1, 20));
    },
  );

  it("that has gone from the file does not end the Crawl-delay at its hour", async () => {
    const rig = site(
      (index) => `User-agent: *\nCrawl-delay: 7\n${index === 0 ? "Request-rate: 1/60s 0002-1700" : ""}`,
      { http: http("1m") },
    );
    const outcomes = ask(rig, 30);
    await rig.clock.runToEnd();
    await outcomes;
    expect(new Set(gaps(rig.seen.map(({ atMs }) => atMs)))).toEqual(new Set([7_000]));
  });
});
