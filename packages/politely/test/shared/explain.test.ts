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

  it("says that an answer is waited for where only that can help, and promises no time", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ concurrency: 1 }), fleet.add({ concurrency: 1 })];
    await fleet.now(one.acquire("x.org"));
    const { causes, waitMs } = await fleet.now(other.explain("x.org"));
    expect(causes[0]).toMatchObject({ waitMs: 0 });
    expect(causes[0].message).toBe("x.org: concurrency 1, all in flight, until an answer comes");
    // When to look again.
    expect(waitMs).toBe(250);
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
    await fleet.clock.advance(20_000);
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

  it("does not come where the store grants at once", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "10/s", burst: 10 });
    const seen = waits(limiter);
    await fleet.demandNow(limiter, 5);
    expect(seen).toEqual([]);
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
