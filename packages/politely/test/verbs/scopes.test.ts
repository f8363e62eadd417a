import { describe, expect, it } from "vitest";
import { expectBooks, failure, gapsOf, granted, many, rig, startsOf, track } from "./support.js";

describe("hosts", () => {
  it("a wildcard is for subdomains only, however deep, each on its own", async () => {
    const { limiter } = rig({ default: { minDelay: "1s" }, hosts: { "*.x.org": { minDelay: "5s" } } });
    for (const host of ["x.org", "a.x.org", "deep.a.x.org", "notx.org"]) granted(limiter.tryAcquire(host));
    expect(limiter.check("x.org").waitMs).toBe(1_000);
    expect(limiter.check("a.x.org").waitMs).toBe(5_000);
    expect(limiter.check("deep.a.x.org").waitMs).toBe(5_000);
    expect(limiter.check("notx.org").waitMs).toBe(1_000);
    expect(limiter.check("b.x.org").proceed).toBe(true);
  });

  it("the most specific rule wins, whatever the order", async () => {
    const { limiter } = rig({
      hosts: {
        "*.org": { minDelay: "1s" },
        "api.x.org": { minDelay: "4s" },
        "*.api.x.org": { minDelay: "3s" },
        "*.x.org": { minDelay: "2s" },
      },
    });
    const expected = { "y.org": 1_000, "a.x.org": 2_000, "b.api.x.org": 3_000, "api.x.org": 4_000 };
    for (const [host, waitMs] of Object.entries(expected)) {
      granted(limiter.tryAcquire(host));
      expect(limiter.check(host).waitMs).toBe(waitMs);
    }
  });

  it("a rule replaces the default whole", async () => {
    const { limiter } = rig({ default: { window: "1/h", minDelay: "1s" }, hosts: { "x.org": { minDelay: "2s" } } });
    granted(limiter.tryAcquire("x.org"));
    expect(limiter.check("x.org").waitMs).toBe(2_000);
  });

  it("a rule with enabled: false lets its host go, and the global limits still count", async () => {
    const { limiter } = rig({ hosts: { "x.org": { enabled: false, minDelay: "1h" } }, global: { window: "5/min" } });
    for (let index = 0; index < 5; index += 1) granted(limiter.tryAcquire("x.org"));
    expect(limiter.tryAcquire("x.org")).toBeUndefined();
    limiter.reset();
    granted(limiter.tryAcquire("x.org")).release("rate_limited");
    expect(limiter.check("x.org").proceed).toBe(true);
  });
});

describe("intents", () => {
  const policy = {
    hosts: { "x.org": { minDelay: "1s", intents: { search: { minDelay: "5s" }, api: { window: "2/min" } } } },
  } as const;

  it("come on top of the limits of the host", async () => {
    const { clock, limiter } = rig(policy);
    const searches = many(3, () => limiter.acquire({ url: "https://x.org/find", intent: "search" }));
    await clock.advance(10_000);
    expect(await startsOf(searches)).toEqual([0, 5_000, 10_000]);
    expect(limiter.check("x.org").waitMs).toBe(1_000);
  });

  it("that wait for their own limit do not stand in the way of a page", async () => {
    const { clock, limiter } = rig(policy);
    const searches = many(2, () => limiter.acquire({ host: "x.org", intent: "search" }));
    const pages = many(3, () => limiter.acquire("x.org"));
    await clock.advance(6_000);
    expect(await startsOf(pages)).toEqual([1_000, 2_000, 3_000]);
    expect(await startsOf(searches)).toEqual([0, 5_000]);
  });

  it("share the gap of their host", async () => {
    const { clock, limiter } = rig(policy);
    const targets = ["search", "api", "fetch", "search", "api"].map((intent) => ({ host: "x.org", intent }));
    const permits = targets.map((target) => limiter.acquire(target));
    await clock.advance(20_000);
    const starts = (await startsOf(permits)).sort((a, b) => a - b);
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(1_000);
  });

  it("that the policy does not name add nothing", async () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire({ host: "x.org", intent: "whatever" }));
    expect(limiter.check({ host: "x.org", intent: "whatever" }).waitMs).toBe(1_000);
    granted(limiter.tryAcquire({ host: "other.org", intent: "search" }));
  });

  it("of a wildcard are each host's own", async () => {
    const { limiter } = rig({ hosts: { "*.x.org": { minDelay: 1, intents: { search: { minDelay: "9s" } } } } });
    granted(limiter.tryAcquire({ host: "a.x.org", intent: "search" }));
    expect(limiter.check({ host: "a.x.org", intent: "search" }).waitMs).toBe(9_000);
    expect(limiter.check({ host: "b.x.org", intent: "search" }).proceed).toBe(true);
  });

  it("are counted in one row with their host", async () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire({ host: "x.org", intent: "search" }));
    expect(limiter.stats().map((row) => row.host)).toEqual(["x.org"]);
    expect(limiter.stats("x.org")?.totalRequests).toBe(1);
  });
});

describe("the global limits", () => {
  it("hold over all hosts together", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { window: "3/s" } });
    const permits = many(9, (index) => limiter.acquire(`h${index}.org`));
    await clock.advance(2_000);
    expect((await startsOf(permits)).sort((a, b) => a - b)).toEqual([
      0, 0, 0, 1_000, 1_000, 1_000, 2_000, 2_000, 2_000,
    ]);
  });

  it("are taken from together with the host or not at all", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "10s" }, global: { rate: "1/h", burst: 3 } });
    granted(limiter.tryAcquire("a.org"));
    for (let index = 0; index < 20; index += 1) {
      expect(limiter.tryAcquire("a.org")).toBeUndefined();
      await failure(limiter.acquire("a.org", { maxWait: 0 }));
    }
    granted(limiter.tryAcquire("b.org"));
    granted(limiter.tryAcquire("c.org"));
    expect(limiter.tryAcquire("d.org")).toBeUndefined();
    await clock.advance(10_000);
    expect(limiter.tryAcquire("d.org")).toBeUndefined();
  });

  it("are shared in turns: a long queue at one host does not keep another out", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { minDelay: 100 } });
    const long = many(50, () => limiter.acquire("long.org"));
    await clock.advance(250);
    const short = many(3, () => limiter.acquire("short.org"));
    await clock.advance(10_000);
    const starts = await startsOf(short);
    expect(starts[2]).toBeLessThanOrEqual(1_000);
    const all = [...(await startsOf(long)), ...starts].sort((a, b) => a - b);
    expect(new Set(gapsOf(all))).toEqual(new Set([100]));
  });

  it("with a concurrency bound what is in flight everywhere", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { concurrency: 2 } });
    const permits = many(5, (index) => track(limiter.acquire(`h${index}.org`)));
    await clock.advance(1_000);
    expect(permits.filter((permit) => permit.state === "done")).toHaveLength(2);
    permits.find((permit) => permit.state === "done")?.value?.release();
    await clock.settle();
    expect(permits.filter((permit) => permit.state === "done")).toHaveLength(3);
  });
});

describe("named scopes", () => {
  const policy = {
    default: { minDelay: 1 },
    scopes: { "proxy:*": { minDelay: "1s" }, "key:abc": { window: "2/min" } },
  } as const;

  it("count every target that names them, each name on its own", async () => {
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire({ host: "a.org", scopes: ["proxy:berlin"] }));
    expect(limiter.check({ host: "b.org", scopes: ["proxy:berlin"] }).waitMs).toBe(1_000);
    expect(limiter.check({ host: "b.org", scopes: ["proxy:paris"] }).proceed).toBe(true);
    expect(limiter.check("b.org").proceed).toBe(true);
  });

  it("several at once are taken together or not at all", async () => {
    const { limiter } = rig(policy);
    const both = { host: "a.org", scopes: ["proxy:berlin", "key:abc"] };
    granted(limiter.tryAcquire(both));
    for (let index = 0; index < 10; index += 1) expect(limiter.tryAcquire(both)).toBeUndefined();
    granted(limiter.tryAcquire({ host: "b.org", scopes: ["key:abc"] }));
    expect(limiter.tryAcquire({ host: "c.org", scopes: ["key:abc"] })).toBeUndefined();
  });

  it("that the policy does not know are an error that names them", async () => {
    const { limiter } = rig(policy);
    const target = { host: "a.org", scopes: ["region:eu"] };
    const error = await failure(limiter.acquire(target));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain("region:eu");
    expect(limiter.tryAcquire("a.org")).toBeDefined();
  });

  it("named twice by a target are an error, and nothing is taken", () => {
    const { limiter } = rig(policy);
    expect(() => limiter.tryAcquire({ host: "a.org", scopes: ["key:abc", "key:abc"] })).toThrow(TypeError);
    expect(limiter.stats("a.org")).toBeUndefined();
  });

  it("do not let a request that needs several starve", async () => {
    const { clock, limiter } = rig({
      default: { minDelay: 0 },
      scopes: { "a:1": { concurrency: 1 }, "b:1": { concurrency: 1 } },
    });
    const busy = async (scope: string, offsetMs: number): Promise<void> => {
      await new Promise<void>((resolve) => void clock.setTimer(offsetMs, resolve));
      for (let round = 0; round < 100; round += 1) {
        await limiter.run({ host: `${scope[0]}.org`, scopes: [scope] }, async () => {
          await new Promise<void>((resolve) => void clock.setTimer(clock.now() + 1_000, resolve));
        });
      }
    };
    // The two are never free at the same moment unless somebody makes room.
    const workers = [busy("a:1", 1), busy("a:1", 2), busy("b:1", 501), busy("b:1", 502)];
    await clock.advance(2_000);
    const needy = track(limiter.acquire({ host: "c.org", scopes: ["a:1", "b:1"] }));
    await clock.advance(30_000);
    expect(needy.state).toBe("done");
    needy.value?.release();
    await clock.advance(400_000);
    await Promise.all(workers);
    expectBooks(limiter.stats("c.org"));
  });
});

describe("presets", () => {
  it("are off unless asked for", async () => {
    const { limiter } = rig();
    expect(limiter.explain("reuters.com").origin).toBe("default");
  });

  it("that are named apply to their hosts", async () => {
    const { limiter } = rig({ presets: ["collector"] });
    granted(limiter.tryAcquire("reuters.com"));
    expect(limiter.check("reuters.com").waitMs).toBe(3_000);
  });

  it("true means the known sites, and leaves the default as it is", async () => {
    const { limiter } = rig({ presets: true });
    granted(limiter.tryAcquire("some-unknown-site.org"));
    expect(limiter.check("some-unknown-site.org").waitMs).toBe(1_000);
    expect(limiter.explain("reuters.com").origin).not.toContain("collector");
  });
});
