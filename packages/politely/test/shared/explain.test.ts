import { describe, expect, it } from "vitest";
import type { LimiterEvent } from "../../src/observe/types.js";
import { politely } from "../../src/politely.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import { Fleet } from "./fleet.js";

function waits(limiter: SharedLimiter): (LimiterEvent & { type: "wait" })[] {
  const seen: (LimiterEvent & { type: "wait" })[] = [];
  limiter.subscribe((event) => {
    if (event.type === "wait") seen.push(event);
  });
  return seen;
}

describe("explain with a store", () => {
  it("names the window that is full, not the first one", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: ["100/s", "2/min"] });
    await fleet.demandNow(limiter, 2);
    const { causes } = await fleet.now(limiter.explain("x.org"));
    expect(causes).toHaveLength(1);
    expect(causes[0].message).toContain("x.org: window 2/min, ");
    expect((await fleet.now(limiter.check("x.org"))).reason).toContain("window 2/min");
  });

  it.each([
    [{ rate: "1/20s" }, "rate", "rate 1/20s of another process's policy"],
    [{ rate: "1/20s", burst: 2 }, "rate", "rate 1/20s burst 2 of another process's policy"],
    [{ window: "1/min" }, "window", "window 1/min of another process's policy"],
    [{ minDelay: "15s" }, "minDelay", "at least 15 s between starts of another process's policy"],
    [{ quota: { count: 1, per: "day" } }, "quota", "quota 1/day UTC of another process's policy"],
  ] as const)("names the limit of another process where that binds: %j", async (limits, limit, words) => {
    const fleet = new Fleet();
    const [strict, loose] = [fleet.add(limits), fleet.add({ rate: "100/s", window: "50/s", minDelay: "1ms" })];
    await fleet.demandNow(strict, "burst" in limits ? 2 : 1);
    const { causes } = await fleet.now(loose.explain("x.org"));
    expect(causes[0]).toMatchObject({ limit, scope: "host", key: "x.org" });
    expect(causes[0].message).toContain(`x.org: ${words}, `);
    expect(causes[0]).not.toHaveProperty("because");
  });

  it("names the concurrency of another process", async () => {
    const fleet = new Fleet();
    const [strict, loose] = [fleet.add({ concurrency: 1 }), fleet.add({ concurrency: 5 })];
    await fleet.now(strict.acquire("x.org"));
    const { causes } = await fleet.now(loose.explain("x.org"));
    expect(causes[0].message).toContain("concurrency 1 of another process's policy, all in flight");
  });

  it("says that an answer is waited for where only that can help, and promises no time", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ concurrency: 1 }), fleet.add({ concurrency: 1 })];
    await fleet.now(one.acquire("x.org"));
    const { causes, waitMs } = await fleet.now(other.explain("x.org"));
    expect(causes[0]).toMatchObject({ waitMs: 0 });
    expect(causes[0].message).toBe("x.org: concurrency 1, all in flight, until an answer comes");
    expect(waitMs).toBe(1);
  });

  it("names the scope of the limit, and the other process's rule for it", async () => {
    const fleet = new Fleet();
    const strict = fleet.add({ default: { rate: "100/s" }, global: { window: "1/min" } });
    const loose = fleet.add({ default: { rate: "100/s" }, global: { window: "9/min" } });
    await fleet.demandNow(strict, 1);
    const { causes } = await fleet.now(loose.explain("y.org"));
    expect(causes[0]).toMatchObject({ limit: "window", scope: "global", key: "global" });
    expect(causes[0].message).toContain("global: window 1/min of another process's policy");
  });

  it("does not take a limit with the same numbers for another's", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "6/min" }), fleet.add({ rate: "1/10s", window: "100/s" })];
    await fleet.demandNow(one, 1);
    const { causes } = await fleet.now(other.explain("x.org"));
    expect(causes[0].message).toMatch(/rate 1\/10s, /);
  });

  it("says that it is closed as the limiter of one process does, without asking the store", async () => {
    const alone = politely({ default: { rate: "1/s" } }, { clock: new VirtualClock() });
    await alone.close();
    const closed = alone.explain("x.org");
    expect(closed).toMatchObject({ proceed: false, waitMs: Number.POSITIVE_INFINITY, causes: [{ limit: "closed" }] });
    expect(alone.check("x.org")).toMatchObject({ proceed: false, reason: "the limiter is closed" });

    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/s" });
    await fleet.demandNow(limiter, 1);
    await fleet.now(limiter.close());
    fleet.mood = "silent";
    const { calls } = fleet;
    expect(await limiter.explain("x.org")).toEqual(closed);
    expect(await limiter.check("x.org")).toEqual(alone.check("x.org"));
    expect(await limiter.stats("x.org")).toMatchObject({ granted: 1 });
    expect(await limiter.elapsedMs("x.org")).toBeLessThan(1_000);
    expect(fleet.calls).toBe(calls);
  });

  it("says what robots.txt asks for where that is what the store heard", async () => {
    const fleet = new Fleet();
    const robots = "User-agent: *\nCrawl-delay: 20\n";
    const answer = (url: string): Response =>
      url.endsWith("/robots.txt") ? new Response(robots) : new Response("fine", { status: 200 });
    const limiter = fleet.add(
      { default: { rate: "100/s", burst: 10 }, http: { robots: true, userAgent: "tester" } },
      { fetch: async (input) => answer(input instanceof Request ? input.url : String(input)) },
    );
    const page = limiter.fetch("https://x.org/a").then((response) => response.text());
    await fleet.clock.advance(21_000);
    await page;
    const { causes } = await fleet.now(limiter.explain("x.org"));
    expect(causes.map(({ limit }) => limit)).toEqual(["robots"]);
    expect(causes[0].message).not.toContain("undefined");
    expect(causes[0].waitMs).toBeGreaterThan(15_000);
  });
});

describe("a pause of a host in a store", () => {
  it("has its true end in every text, and none once it is resumed", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    await fleet.now(one.pause("x.org"));
    const seen = waits(other);
    const work = fleet.demand(other, 1).catch((error: unknown) => error);
    await fleet.clock.advance(50);
    expect(seen[0]).toMatchObject({ reason: "x.org: paused until it is resumed", waitMs: Number.POSITIVE_INFINITY });
    const { causes } = await fleet.now(other.explain("x.org"));
    expect(causes[0]).toMatchObject({ limit: "pause", scope: "host", message: "x.org: paused until it is resumed" });
    await fleet.now(other.cancelWaiting("x.org"));
    expect(await work).toMatchObject({ name: "AbortError" });
    await fleet.now(one.resume("x.org"));
    expect(await fleet.now(other.explain("x.org"))).toMatchObject({ proceed: true, causes: [] });
    expect(await fleet.now(other.acquire("x.org", { maxWait: "1s" }))).toBeDefined();
  });

  it("goes on while the store is away", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    await fleet.now(one.pause("x.org", "1min"));
    const work = fleet.demand(other, 1);
    await fleet.clock.advance(1_000);
    fleet.mood = "refusing";
    await fleet.clock.advance(50_000);
    expect(fleet.starts).toEqual([]);
    await fleet.clock.advance(12_000);
    await work;
    expect(fleet.starts).toHaveLength(1);
  });
});

describe("the first wait event of a limiter with a store", () => {
  it("names what the store said stopped it, and how long that is", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ window: ["100/s", "1/10s"] }), fleet.add({ window: ["100/s", "1/10s"] })];
    await fleet.demandNow(one, 1);
    const seen = waits(other);
    const work = fleet.demand(other, 2);
    await fleet.clock.advance(50);
    expect(seen).toHaveLength(2);
    expect(seen.map(({ ahead }) => ahead)).toEqual([0, 1]);
    for (const { reason, waitMs } of seen) {
      expect(reason).toContain("x.org: window 1/10s, 10 s to go");
      expect(waitMs).toBeGreaterThan(9_000);
    }
    await fleet.clock.advance(60_000);
    await work;
    expect(seen).toHaveLength(2);
  });

  it("names the other process's rule where that is stricter", async () => {
    const fleet = new Fleet();
    const [strict, loose] = [fleet.add({ rate: "1/20s" }), fleet.add({ rate: "50/s" })];
    await fleet.demandNow(strict, 1);
    const seen = waits(loose);
    const work = fleet.demand(loose, 1);
    await fleet.clock.advance(50);
    expect(seen[0]?.reason).toContain("rate 1/20s of another process's policy");
    await fleet.clock.advance(60_000);
    await work;
  });

  it("does not come where the store grants at once", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s", burst: 10 });
    const seen = waits(limiter);
    await fleet.demandNow(limiter, 5);
    expect(seen).toEqual([]);
  });

  it("comes for one that is granted ahead of its instant, with the time to go", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "25/s" });
    await fleet.demandNow(limiter, 1);
    await fleet.clock.advance(20);
    const seen = waits(limiter);
    const work = fleet.demand(limiter, 2);
    await fleet.clock.advance(200);
    await work;
    expect(seen).toHaveLength(2);
    expect(seen.every(({ reason }) => /x\.org: .* ms to go/.test(reason))).toBe(true);
    expect(seen.every(({ waitMs }) => waitMs > 0 && waitMs < 80)).toBe(true);
  });

  it("comes at once where this process knows why: a pause of its own", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s" });
    await limiter.pause(undefined, "10s");
    const seen = waits(limiter);
    const work = fleet.demand(limiter, 1);
    expect(seen[0]?.reason).toContain("everything is paused");
    await fleet.clock.advance(11_000);
    await work;
    expect(seen).toHaveLength(1);
  });
});
