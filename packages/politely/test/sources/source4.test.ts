import { describe, expect, it } from "vitest";
import { DeadlineError, limit, loadPolicy, PolicyError, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { expectBooks, failure, gapsOf, granted, many, memoryLogger, rig, startsOf } from "../verbs/support.js";

const onePerSecond = { default: { rate: "1/s", burst: 1 } } as const;

/** The configuration file of the document, as it stands there. */
const configFile = `{
  "version": "1.0",
  "default_config": { "requests_per_second": 1.0, "burst_capacity": 1 },
  "domains": {
    "javdb.com": { "requests_per_second": 1.0, "burst_capacity": 1 },
    "av-wiki.net": { "requests_per_second": 2.0, "burst_capacity": 2 }
  }
}`;

function problemsOf(load: () => unknown): readonly { path: string; message: string }[] {
  try {
    load();
  } catch (error) {
    if (error instanceof PolicyError) return error.problems;
    throw error;
  }
  throw new Error("a PolicyError was expected");
}

describe("source 4, the limiter per domain", () => {
  it("S4.1 one limiter serves all domains, each at its own pace, made on first use", async () => {
    const { clock, limiter } = rig({ ...onePerSecond, hosts: { "fast.org": { rate: "2/s", burst: 2 } } });
    expect(limiter.stats()).toEqual([]);
    const slow = many(2, () => limiter.acquire("never-configured.org"));
    const fast = many(4, () => limiter.acquire("fast.org"));
    await clock.advance(1_000);
    expect(await startsOf(slow)).toEqual([0, 1_000]);
    expect(await startsOf(fast)).toEqual([0, 0, 500, 1_000]);
    expect(
      limiter
        .stats()
        .map((row) => row.host)
        .sort(),
    ).toEqual(["fast.org", "never-configured.org"]);
  });

  it("S4.1 limit takes the limits of one domain as the document writes them", () => {
    const limiter = limit({ requests_per_second: 1, burst_capacity: 2 }, { clock: new VirtualClock() });
    expect([limiter.tryAcquire(), limiter.tryAcquire(), limiter.tryAcquire()].filter(Boolean)).toHaveLength(2);
    expect(problemsOf(() => limit({ requests_per_second: 0, burst_capacity: 2 }))).toEqual([
      { path: "requests_per_second", message: "must be a number above 0 and at most 1e12; got 0" },
    ]);
  });

  it("S4.2 a wait resolves when its token was taken, and without a wait at once", async () => {
    const { clock, limiter } = rig(onePerSecond);
    const { signal } = new AbortController();
    expect((await limiter.acquire("a.org", { signal })).waitedMs).toBe(0);
    const second = limiter.acquire("a.org", { signal });
    await clock.advance(1_000);
    expect((await second).startedAtMs).toBe(1_000);
    expect(limiter.stats("a.org")?.tokens).toBe(0);
  });

  it("S4.2 an abort rejects the wait at the same instant, with the signal's reason, and takes no token", async () => {
    const { clock, limiter } = rig(onePerSecond);
    await limiter.acquire("a.org");
    const abort = new AbortController();
    const waiting = failure(limiter.acquire("a.org", { signal: abort.signal }));
    await clock.advance(400);
    const reason = new Error("stop");
    abort.abort(reason);
    expect(await waiting).toBe(reason);
    expect(clock.now()).toBe(400);
    await clock.advance(600);
    expect(limiter.tryAcquire("a.org")).toBeDefined();
  });

  it("S4.2 a deadline that cannot be met rejects at once", async () => {
    const { clock, limiter } = rig(onePerSecond);
    await limiter.acquire("a.org");
    const error = await failure(limiter.acquire("a.org", { maxWait: 999 }));
    expect(error).toBeInstanceOf(DeadlineError);
    expect(error).toMatchObject({ code: "POLITELY_DEADLINE", waitMs: 1_000 });
    expect(clock.now()).toBe(0);
  });

  it("S4.3 allow takes a token if one is there, and a refusal takes nothing", async () => {
    const { clock, limiter } = rig({ default: { rate: "2/s", burst: 2 } });
    expect(limiter.tryAcquire("a.org")).toBeDefined();
    expect(limiter.tryAcquire("a.org")).toBeDefined();
    for (let index = 0; index < 50; index += 1) expect(limiter.tryAcquire("a.org")).toBeUndefined();
    await clock.advance(500);
    expect(limiter.tryAcquire("a.org")).toBeDefined();
    expect(limiter.tryAcquire("a.org")).toBeUndefined();
    expect(limiter.stats("a.org")).toMatchObject({ totalRequests: 3, delayedRequests: 0 });
  });

  it.each([
    ["text", configFile],
    ["a parsed object", JSON.parse(configFile) as object],
  ])("S4.4 the configuration file loads as it is, given as %s", async (_form, source) => {
    const { clock, limiter } = rig(loadPolicy(source));
    const javdb = many(3, () => limiter.acquire("javdb.com"));
    const wiki = many(4, () => limiter.acquire("av-wiki.net"));
    const other = many(2, () => limiter.acquire("other.org"));
    await clock.advance(2_000);
    expect(await startsOf(javdb)).toEqual([0, 1_000, 2_000]);
    expect(await startsOf(wiki)).toEqual([0, 0, 500, 1_000]);
    expect(await startsOf(other)).toEqual([0, 1_000]);
  });

  it.each([
    ["requests_per_second", 0],
    ["requests_per_second", -1.5],
    ["requests_per_second", "fast"],
    ["burst_capacity", 0],
    ["burst_capacity", -3],
    ["burst_capacity", 1.5],
  ])("S4.4 a %s of %s is an error that names the field and the value", (field, value) => {
    const limits = { requests_per_second: 1, burst_capacity: 1, [field]: value };
    const problems = problemsOf(() =>
      loadPolicy({ version: "1.0", default_config: limits, domains: { "a.org": limits } }),
    );
    expect(problems).toHaveLength(2);
    for (const problem of problems) {
      expect(problem.path).toContain(field);
      expect(problem.message).toContain(String(value));
    }
    expect(problems.map((problem) => problem.path).join(" ")).toMatch(/default_config.*a\.org/s);
  });

  it("S4.4 a burst above a minute's worth of the rate is a warning, not an error", () => {
    const logger = memoryLogger();
    const policy = loadPolicy({
      version: "1.0",
      default_config: { requests_per_second: 1, burst_capacity: 60 },
      domains: { "big.org": { requests_per_second: 1, burst_capacity: 61 } },
    });
    politely(policy, { clock: new VirtualClock(), logger });
    expect(logger.lines.warn).toHaveLength(1);
    expect(logger.lines.warn[0]).toMatch(/big\.org/);
    expect(logger.lines.warn[0]).toMatch(/61/);
  });

  it.each(["JAVDB.com", "https://javdb.com/v/1?x=2", "http://JavDB.com:8080", new URL("https://javdb.com/")])(
    "S4.5 %s is the domain javdb.com",
    async (target) => {
      const { limiter } = rig(onePerSecond);
      expect((await limiter.acquire(target)).key).toBe("javdb.com");
      expect(limiter.check("javdb.com").waitMs).toBe(1_000);
    },
  );

  it.each(["", "   ", "https://"])("S4.5 the empty domain %j is an error", async (target) => {
    const { limiter } = rig(onePerSecond);
    expect(await failure(limiter.acquire(target))).toBeInstanceOf(TypeError);
    expect(() => limiter.tryAcquire(target)).toThrow(TypeError);
    expect(() => limiter.check(target)).toThrow(TypeError);
    expect(() => limiter.stats(target)).toThrow(TypeError);
  });

  it("S4.6 the statistics of a domain count requests, delays and waits", async () => {
    const wallMs = Date.UTC(2025, 9, 12, 10, 30, 45);
    const { clock, limiter } = rig(onePerSecond, { clock: new VirtualClock({ wallMs }) });
    const permits = many(3, () => limiter.acquire("a.org"));
    await clock.advance(2_000);
    await Promise.all(permits);
    await clock.advance(5_000);
    const stats = limiter.stats("a.org");
    expect(stats).toMatchObject({
      host: "a.org",
      totalRequests: 3,
      delayedRequests: 2,
      totalWaitMs: 3_000,
      averageWaitMs: 1_500,
      lastRequestAt: new Date(wallMs + 2_000),
    });
    expect(stats?.delayRate).toBeCloseTo(2 / 3, 12);
  });

  it("S4.6 a wait counts as a delay from above 10 ms on", async () => {
    const { clock, limiter } = rig({ hosts: { "ten.org": { minDelay: 10 }, "eleven.org": { minDelay: 11 } } });
    const permits = ["ten.org", "ten.org", "eleven.org", "eleven.org"].map((host) => limiter.acquire(host));
    await clock.advance(20);
    await Promise.all(permits);
    expect(limiter.stats("ten.org")).toMatchObject({ delayedRequests: 0, totalWaitMs: 10 });
    expect(limiter.stats("eleven.org")).toMatchObject({ delayedRequests: 1, totalWaitMs: 11, averageWaitMs: 11 });
  });

  it("S4.6 a snapshot has exactly the seven keys of the document, times in whole milliseconds", async () => {
    const wallMs = Date.UTC(2025, 9, 12, 10, 30, 45);
    const { clock, limiter } = rig({ default: { rate: "3/s" } }, { clock: new VirtualClock({ wallMs }) });
    const none = { total_requests: 0, delayed_requests: 0, total_wait_time_ms: 0, average_wait_time_ms: 0 };
    const blank = { domain: "javdb.com", ...none, last_request_time: null, delay_rate: 0 };
    limiter.check("javdb.com");
    limiter.pause("javdb.com");
    const waiting = limiter.acquire("javdb.com");
    expect(limiter.stats("javdb.com")?.toSnapshot()).toEqual(blank);
    limiter.resume("javdb.com");
    const permits = [waiting, ...many(2, () => limiter.acquire("javdb.com"))];
    await clock.advance(1_000);
    await Promise.all(permits);
    // A third of a second and two thirds, each rounded up to a microsecond.
    expect(limiter.stats("javdb.com")?.toSnapshot()).toEqual({
      domain: "javdb.com",
      total_requests: 3,
      delayed_requests: 2,
      total_wait_time_ms: 1_000,
      average_wait_time_ms: 500,
      last_request_time: "2025-10-12T10:30:45.666Z",
      delay_rate: 2 / 3,
    });
  });

  it("S4.6 as JSON the statistics carry the keys of the document", async () => {
    const wallMs = Date.UTC(2025, 9, 12, 10, 30, 45);
    const { clock, limiter } = rig(onePerSecond, { clock: new VirtualClock({ wallMs }) });
    const permits = many(2, () => limiter.acquire("javdb.com"));
    await clock.advance(1_000);
    await Promise.all(permits);
    const json = JSON.parse(JSON.stringify(limiter.stats("javdb.com"))) as Record<string, unknown>;
    expect(json).toMatchObject({
      domain: "javdb.com",
      total_requests: 2,
      delayed_requests: 1,
      total_wait_time_ms: 1_000,
      average_wait_time_ms: 1_000,
      delay_rate: 0.5,
    });
    expect(json.last_request_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    expect(Date.parse(String(json.last_request_time))).toBe(wallMs + 1_000);
  });

  it("S4.6 a snapshot is a copy that does not change afterwards", async () => {
    const { clock, limiter } = rig(onePerSecond);
    await limiter.acquire("a.org");
    const before = limiter.stats("a.org");
    const json = JSON.stringify(before);
    await clock.advance(5_000);
    await limiter.acquire("a.org");
    limiter.record("a.org", "rate_limited");
    expect(JSON.stringify(before)).toBe(json);
    expect(limiter.stats("a.org")?.totalRequests).toBe(3);
  });

  it("S4.6 all domains can be read at once, and an unknown one is explicitly not known", async () => {
    const { limiter } = rig(onePerSecond);
    await Promise.all(["a.org", "b.org", "c.org"].map((host) => limiter.acquire(host)));
    expect(
      limiter
        .stats()
        .map((row) => row.host)
        .sort(),
    ).toEqual(["a.org", "b.org", "c.org"]);
    expect(limiter.stats("nobody.org")).toBeUndefined();
  });

  it("S4.6 cancelled waits are counted apart from requests and waits", async () => {
    const { clock, limiter } = rig(onePerSecond);
    await limiter.acquire("a.org");
    const abort = new AbortController();
    const waiting = failure(limiter.acquire("a.org", { signal: abort.signal }));
    await clock.advance(500);
    abort.abort();
    await waiting;
    expect(limiter.stats("a.org")).toMatchObject({
      totalRequests: 1,
      cancelledRequests: 1,
      totalWaitMs: 0,
      delayedRequests: 0,
    });
    expectBooks(limiter.stats("a.org"));
  });

  it("S4.6 the statistics can be reset without touching the pace", async () => {
    const { clock, limiter } = rig(onePerSecond);
    granted(limiter.tryAcquire("a.org")).release("success");
    await clock.advance(400);
    limiter.reset("a.org", "stats");
    expect(limiter.stats("a.org")?.totalRequests ?? 0).toBe(0);
    expect(limiter.check("a.org").waitMs).toBe(600);
  });

  it("S4.7 a hundred domains take less than 10 MB", async () => {
    const used = (): number => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    const { limiter } = rig(onePerSecond);
    const before = used();
    await Promise.all(many(100, (index) => limiter.acquire(`domain${index}.org`)));
    expect(used() - before).toBeLessThan(10 * 1024 * 1024);
    expect(limiter.stats()).toHaveLength(100);
  });

  it("S4.8 any number of callers at once keep every domain's pace", async () => {
    const { clock, limiter } = rig({ default: { rate: "10/s", burst: 1 } });
    const hosts = many(10, (index) => `domain${index}.org`);
    const permits = hosts.map((host) => many(100, () => limiter.acquire(host)));
    await clock.advance(9_900);
    for (const [index, host] of hosts.entries()) {
      expect(new Set(gapsOf(await startsOf(permits[index])))).toEqual(new Set([100]));
      expect(limiter.stats(host)).toMatchObject({ totalRequests: 100, waiting: 0 });
      expectBooks(limiter.stats(host));
    }
  });
});
