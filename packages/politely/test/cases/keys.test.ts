import { describe, expect, it } from "vitest";
import type { Target } from "../../src/index.js";
import { many, rig, startsOf } from "../verbs/support.js";

const slow = { default: { minDelay: "60s" } } as const;

describe("keys", () => {
  const same: readonly (readonly [string, readonly Target[]])[] = [
    ["case", ["Example.COM", "example.com", "EXAMPLE.com"]],
    ["the port", ["example.com:8080", "https://example.com:443/", "http://example.com:3000/x", "example.com"]],
    ["a trailing dot", ["example.com.", "https://example.com./", "example.com"]],
    ["an international name", ["bücher.example", "https://BÜCHER.example/", "xn--bcher-kva.example"]],
    ["an IPv6 address", ["http://[2001:DB8::1]/", "http://[2001:db8:0:0:0:0:0:1]:8080/", "[2001:db8::1]"]],
    ["path, query, user and fragment", ["https://me:secret@example.com/a?b=c#d", "http://example.com"]],
    [
      "the form of the target",
      [new URL("https://example.com/x"), { host: "example.com" }, { url: "https://example.com/y" }],
    ],
  ];

  it.each(same)("%s makes no second key: all spellings are one site (crawlee 3997)", async (_name, spellings) => {
    for (const first of spellings) {
      const { limiter } = rig(slow);
      const { key } = await limiter.acquire(first);
      for (const other of spellings) {
        expect(limiter.check(other).waitMs).toBe(60_000);
        expect(limiter.stats(other)?.host).toBe(key);
      }
      expect(limiter.stats()).toHaveLength(1);
    }
  });

  it("rules are found by the same normal form as targets (crawlee 3997)", async () => {
    const { limiter } = rig({
      ...slow,
      hosts: { "BÜCHER.Example.": { minDelay: "2s" }, "*.EXAMPLE.org": { minDelay: "3s" } },
    });
    await limiter.acquire("https://xn--bcher-kva.example/");
    await limiter.acquire("a.example.ORG.");
    expect(limiter.check("bücher.example").waitMs).toBe(2_000);
    expect(limiter.check("A.example.org").waitMs).toBe(3_000);
  });

  it("a port that a rule names is a site of its own (crawlee 3997)", async () => {
    const { limiter } = rig({ ...slow, hosts: { "example.com:8080": { minDelay: "1s" } } });
    await limiter.acquire("http://example.com:8080/");
    expect(limiter.check("example.com:8080").waitMs).toBe(1_000);
    expect(limiter.check("http://example.com:9090/").waitMs).toBe(0);
    expect(limiter.check("http://example.com/").waitMs).toBe(0);
  });

  it("a redirect to another host counts there and not where it came from (crawlee 3997)", async () => {
    const { limiter } = rig(slow);
    await limiter.acquire("https://short.example/1");
    expect((await limiter.acquire("https://Long.Example/landing")).waitedMs).toBe(0);
    expect(limiter.check("short.example").waitMs).toBe(60_000);
    expect(limiter.check("long.example").waitMs).toBe(60_000);
  });

  it("subdomains are sites of their own", async () => {
    const { limiter } = rig(slow);
    await limiter.acquire("example.com");
    expect(limiter.check("www.example.com").waitMs).toBe(0);
  });

  it("a key can be made of what the caller says", async () => {
    const { limiter } = rig({ ...slow, groupBy: (url) => url.hostname.split(".").slice(-2).join(".") });
    expect((await limiter.acquire("https://a.example.com/")).key).toBe("example.com");
    expect(limiter.check("b.example.com").waitMs).toBe(60_000);
    expect(limiter.check("example.com").waitMs).toBe(60_000);
  });

  it("hosts that owe nothing are forgotten, and their statistics folded into one row (rate-limiter-flexible)", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 100 } }, { keepStats: 10 });
    for (let index = 0; index < 500; index += 1) {
      (await limiter.acquire(`h${index}.org`)).release("success");
      await clock.advance(1);
    }
    await clock.advance(60_000);
    const rows = limiter.stats();
    const folded = rows.find((row) => row.foldedHosts !== undefined);
    expect(rows.length).toBeLessThanOrEqual(11);
    expect(folded?.host).toBe("*");
    expect((folded?.foldedHosts ?? 0) + rows.length - 1).toBe(500);
    expect(rows.reduce((sum, row) => sum + row.totalRequests, 0)).toBe(500);
    expect(clock.pendingTimers).toBe(0);
  });

  it("the hosts kept are the most recent ones (rate-limiter-flexible)", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 100 } }, { keepStats: 3 });
    for (let index = 0; index < 20; index += 1) {
      (await limiter.acquire(`h${index}.org`)).release("success");
      await clock.advance(200);
    }
    const hosts = limiter.stats().map((row) => row.host);
    expect(hosts.filter((host) => host !== "*").sort()).toEqual(["h17.org", "h18.org", "h19.org"]);
    expect(limiter.stats("h0.org")).toBeUndefined();
  });

  it.each([
    ["a gap", { minDelay: "1h" }],
    ["a window", { window: "1/h" }],
    ["a bucket", { rate: "1/h" }],
    ["a quota", { quota: { count: 1, per: "month" } }],
  ] as const)(
    "%s that is still owed is never forgotten, however many hosts come after (StormCrawler)",
    async (_name, limits) => {
      const { clock, limiter } = rig({ default: limits }, { keepStats: 0 });
      (await limiter.acquire("debtor.org")).release("success");
      for (let index = 0; index < 3_000; index += 1) limiter.tryAcquire(`h${index}.org`)?.release();
      await clock.advance(60_000);
      limiter.stats();
      expect(limiter.tryAcquire("debtor.org")).toBeUndefined();
    },
  );

  it("a cooldown is never forgotten either (StormCrawler)", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 } }, { keepStats: 0, maxKeys: 100 });
    (await limiter.acquire("debtor.org")).release({ kind: "rate_limited", retryAfterMs: 3_600_000 });
    for (let index = 0; index < 3_000; index += 1) {
      limiter.tryAcquire(`h${index}.org`)?.release();
      if (index % 50 === 0) await clock.advance(10);
    }
    limiter.stats();
    expect(limiter.check("debtor.org").waitMs).toBe(3_600_000 - clock.now());
  });

  it("a wildcard rule is not shared by the hosts it matches: each has its own (Colly)", async () => {
    const { clock, limiter } = rig({ ...slow, hosts: { "*.example.com": { minDelay: "1s" } } });
    const permits = ["a", "b", "c"].map((name) => many(2, () => limiter.acquire(`${name}.example.com`)));
    await clock.advance(1_000);
    for (const host of permits) expect(await startsOf(host)).toEqual([0, 1_000]);
  });

  it("a table that grows ahead of time holds its hosts and nothing else, also when they go and come again", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "60s" } }, { keepStats: 10 });
    const hosts = many(60_000, (index) => `h${index}.org`);
    for (let round = 0; round < 2; round += 1) {
      for (const host of hosts) limiter.tryAcquire(host)?.release();
      expect(hosts.some((host) => limiter.check(host).proceed)).toBe(false);
      const kept = [...limiter.eachStats()].flatMap(({ host }) => (host === "*" ? [] : [host]));
      expect([kept.length, new Set(kept)]).toEqual([60_000, new Set(hosts)]);
      await clock.advance(60_000);
      expect(limiter.stats()).toHaveLength(11);
    }
  });
});
