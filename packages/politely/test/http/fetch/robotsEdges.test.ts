import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { ClosedError, DeadlineError, type PolicyInput, RobotsError } from "../../../src/index.js";
import { type Scripted, scriptedSite } from "./scripted.js";

const HTTP = { userAgent: "Archive/2.1 (me@archive.example)", robots: true } as const;
const FAST = { rate: "1000/s", burst: 1000, backoff: "none" } as const;
const SITE = "https://a.example";
const HOUR_MS = 3_600_000;
/** The virtual clock begins at midnight, UTC. */
const AT_SIX = "User-agent: *\nVisit-time: 0600-0700";

/** A site with a robots.txt; everything else answers 200. */
function site(robots: Scripted | ((index: number) => Scripted), policy: PolicyInput = {}) {
  let asked = 0;
  return scriptedSite({ default: FAST, http: HTTP, ...policy }, (_index, { url }) => {
    if (!url.endsWith("/robots.txt")) return 200;
    return typeof robots === "function" ? robots(asked++) : robots;
  });
}

function text(body: string, latencyMs = 0): Scripted {
  return { status: 200, body, latencyMs };
}

function log(rig: ReturnType<typeof site>): [string, number][] {
  return rig.seen.map(({ url, atMs }) => [new URL(url).pathname, atMs]);
}

/** What a request fails with. */
async function failureOf(page: Promise<Response>): Promise<unknown> {
  return page.then(
    ({ status }) => `It did not fail: ${status}.`,
    (error: unknown) => error,
  );
}

/** Hosts on which the limiter holds nobody. */
const unpaced: [string, string, PolicyInput][] = [
  ["localhost", "http://localhost:8080", {}],
  ["a host that is off", SITE, { hosts: { "a.example": { enabled: false } } }],
];

describe.each(unpaced)("robots.txt of %s", (_name, origin, policy) => {
  it("with a Visit-time is waited for, and the program goes on meanwhile", async () => {
    const rig = site(text(AT_SIX), policy);
    const page = rig.polite.fetch(`${origin}/1`);
    await rig.clock.advance(HOUR_MS);
    expect(log(rig)).toEqual([["/robots.txt", 0]]);
    await rig.clock.runToEnd();
    expect((await page).ok).toBe(true);
    expect(log(rig)).toEqual([
      ["/robots.txt", 0],
      ["/1", 6 * HOUR_MS],
    ]);
    expect(rig.polite.stats(origin)).toMatchObject({ inFlight: 0 });
  });

  it("with a Visit-time beyond maxWait refuses at once and says for how long", async () => {
    const rig = site(text(AT_SIX), policy);
    const page = rig.polite.fetch(`${origin}/1`, { politely: { maxWait: "5h" } });
    await expect(page).rejects.toBeInstanceOf(DeadlineError);
    await expect(page).rejects.toMatchObject({ waitMs: 6 * HOUR_MS });
    expect(rig.clock.pendingTimers).toBe(0);
  });

  it("with a Visit-time lets go of one who gives up, and leaves nothing behind", async () => {
    const rig = site(text(AT_SIX), policy);
    const controller = new AbortController();
    const failure = failureOf(rig.polite.fetch(`${origin}/1`, { signal: controller.signal }));
    await rig.clock.advance(1_000);
    controller.abort("enough");
    expect(await failure).toBe("enough");
    expect(rig.clock.pendingTimers).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  it("with a Visit-time may be asked for by the program itself at any time", async () => {
    const rig = site(text(AT_SIX), policy);
    const page = rig.polite.fetch(`${origin}/1`);
    await rig.clock.advance(1_000);
    expect((await rig.polite.fetch(`${origin}/robots.txt`)).ok).toBe(true);
    await rig.clock.runToEnd();
    await page;
  });

  it("that answers 429 is asked again after its Retry-After, by all together", async () => {
    const rig = site(
      (index) => (index < 2 ? { status: 429, headers: { "retry-after": "30" } } : text("User-agent: *\nDisallow: /no")),
      policy,
    );
    const pages = ["/1", "/2"].map((path) => rig.polite.fetch(origin + path));
    await rig.clock.advance(10_000);
    pages.push(rig.polite.fetch(`${origin}/3`));
    await rig.clock.runToEnd();
    expect((await Promise.all(pages)).every(({ ok }) => ok)).toBe(true);
    expect(log(rig).filter(([path]) => path === "/robots.txt")).toEqual([
      ["/robots.txt", 0],
      ["/robots.txt", 30_000],
      ["/robots.txt", 60_000],
    ]);
  });

  it("that answers 429 without saying for how long is asked less and less often, five times", async () => {
    const rig = site(429, policy);
    const failure = failureOf(rig.polite.fetch(`${origin}/1`));
    await rig.clock.runToEnd();
    expect(await failure).toBeInstanceOf(RobotsError);
    expect(log(rig).map(([, atMs]) => atMs)).toEqual([0, 1_000, 3_000, 7_000, 15_000]);
  });

  it("that asks to wait beyond maxWait refuses at once", async () => {
    const rig = site({ status: 429, headers: { "retry-after": "30" } }, policy);
    const page = rig.polite.fetch(`${origin}/1`, { politely: { maxWait: "10s" } });
    await expect(page).rejects.toBeInstanceOf(DeadlineError);
    expect(rig.seen).toHaveLength(1);
    expect(rig.clock.now()).toBe(0);
  });
});

describe("a wait for robots.txt", () => {
  it("and the wait in the queue share one maxWait", async () => {
    const ask = async (maxWait: number) => {
      const rig = site(text("", 400), { default: { minDelay: 600 } });
      const page = rig.polite.fetch(`${SITE}/1`, { politely: { maxWait } });
      const outcome = page.then(
        () => rig.seen[1].atMs,
        (error: unknown) => error,
      );
      await rig.clock.runToEnd();
      return outcome;
    };
    expect(await ask(599)).toBeInstanceOf(DeadlineError);
    expect(await ask(600)).toBe(600);
  });

  it("does not begin for a maxWait that makes no sense, and nothing is left to fail later", async () => {
    const rig = site(text("", 5_000), { default: { minDelay: "10s" } });
    (await rig.polite.acquire(SITE)).release();
    await expect(rig.polite.fetch(`${SITE}/1`, { politely: { maxWait: -5 } })).rejects.toBeInstanceOf(RangeError);
    expect(rig.polite.stats(SITE)).toMatchObject({ asked: 1, waiting: 0 });
    await rig.polite.close();
  });

  it("does not begin for one who has given up already", async () => {
    const rig = site(text(""));
    await expect(rig.polite.fetch(`${SITE}/1`, { signal: AbortSignal.abort("enough") })).rejects.toBe("enough");
    await rig.clock.runToEnd();
    expect(rig.seen).toHaveLength(0);
  });

  it("puts no more than two listeners on a signal that many share, and takes them off", async () => {
    const rig = site(text("User-agent: *\nCrawl-delay: 1", 1_000));
    const { signal } = new AbortController();
    const init = { signal, politely: { maxWait: "1h" } } as const;
    const pages = Array.from({ length: 16 }, (_, page) => rig.polite.fetch(`${SITE}/${page}`, init));
    await rig.clock.advance(500);
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(2);
    await rig.clock.runToEnd();
    await Promise.all(pages);
  });

  it("ends when the limiter is closed", async () => {
    const slow = site(text("", 5_000));
    const shut = site(text(AT_SIX), { hosts: { "a.example": { enabled: false } } });
    const deferred = site(429, { hosts: { "a.example": { enabled: false } } });
    for (const rig of [slow, shut, deferred]) {
      const failure = failureOf(rig.polite.fetch(`${SITE}/1`));
      await rig.clock.advance(100);
      await rig.polite.close();
      expect(await failure).toBeInstanceOf(ClosedError);
      expect(rig.clock.now()).toBe(100);
    }
  });
});

describe("a policy that turns robots.txt off frees at once", () => {
  const off: PolicyInput = { default: FAST };
  const unpacedOff: PolicyInput = { default: FAST, hosts: { "a.example": { enabled: false } } };

  it.each([
    ["those queued under a Crawl-delay", text("User-agent: *\nCrawl-delay: 50"), off],
    ["those held by a Visit-time", text(AT_SIX), off],
    ["those who wait for the hours of a host that is off", text(AT_SIX), unpacedOff],
    ["those who wait for a slow robots.txt", text("User-agent: *\nCrawl-delay: 50", 20_000), off],
    ["those who wait to ask again", { status: 429, headers: { "retry-after": "900" } }, unpacedOff],
  ])("%s", async (_name, robots: Scripted, policy) => {
    const rig = site(robots, policy);
    const pages = ["/1", "/2"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.advance(1_000);
    expect(log(rig)).toEqual([["/robots.txt", 0]]);
    rig.polite.configure(policy);
    await rig.clock.advance(0);
    expect(log(rig).slice(1)).toEqual([
      ["/1", 1_000],
      ["/2", 1_000],
    ]);
    await Promise.all(pages);
    await rig.clock.runToEnd();
    // A file that comes after all slows nobody down either.
    expect(rig.polite.explain(SITE).causes).toEqual([]);
  });

  it("but not what is queued for another reason", async () => {
    const rig = site(text("User-agent: *\nCrawl-delay: 50"), { default: { minDelay: "5s" } });
    const pages = ["/1", "/2"].map((path) => rig.polite.fetch(SITE + path));
    await rig.clock.advance(1_000);
    rig.polite.configure({ default: { minDelay: "5s" } });
    await rig.clock.runToEnd();
    await Promise.all(pages);
    expect(log(rig).map(([, atMs]) => atMs)).toEqual([0, 5_000, 10_000]);
  });
});
