import { describe, expect, it } from "vitest";
import { keyRig, many, rig, track } from "./support.js";

describe("explain", () => {
  it("has no causes when a request may proceed", () => {
    const { limiter } = rig({ hosts: { "x.org": { minDelay: "1s" } } });
    expect(limiter.explain("https://X.org/a")).toEqual({
      key: "x.org",
      proceed: true,
      waitMs: 0,
      ahead: 0,
      origin: "hosts.x.org",
      causes: [],
    });
  });

  it.each([
    ["x.org", "hosts.x.org"],
    ["a.wild.org", "hosts.*.wild.org"],
    ["elsewhere.org", "default"],
    ["localhost", "localhost"],
  ])("says that the limits of %s come from %s", (host, origin) => {
    const { limiter } = rig({ hosts: { "x.org": { minDelay: 1 }, "*.wild.org": { minDelay: 1 } } });
    expect(limiter.explain(host).origin).toBe(origin);
  });

  it("names every cause, the most binding first", async () => {
    const { limiter } = keyRig({ minDelay: "1s", rate: "1/5s", window: "1/min" });
    await limiter.acquire();
    const { causes, waitMs, proceed } = limiter.explain();
    expect(proceed).toBe(false);
    expect(waitMs).toBe(60_000);
    expect(causes.map((cause) => [cause.limit, cause.waitMs])).toEqual([
      ["window", 60_000],
      ["rate", 5_000],
      ["minDelay", 1_000],
    ]);
    expect(causes.every((cause) => cause.message.length > 0)).toBe(true);
  });

  it("agrees with check", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", window: "2/min" });
    for (let index = 0; index < 4; index += 1) {
      await clock.advance(limiter.check().waitMs / 2);
      expect(limiter.explain().waitMs).toBe(limiter.check().waitMs);
      await clock.advance(limiter.check().waitMs);
      await limiter.acquire();
    }
  });

  it("tells the scope and the key of each cause", async () => {
    const { limiter } = rig({
      hosts: { "x.org": { minDelay: "1s", intents: { search: { minDelay: "2s" } } } },
      global: { minDelay: "3s" },
      scopes: { "proxy:*": { minDelay: "4s" } },
    });
    const target = { host: "x.org", intent: "search", scopes: ["proxy:berlin"] };
    await limiter.acquire(target);
    const causes = limiter.explain(target).causes.map((cause) => [cause.scope, cause.waitMs]);
    expect(causes).toEqual([
      ["proxy:berlin", 4_000],
      ["global", 3_000],
      ["intent", 2_000],
      ["host", 1_000],
    ]);
    expect(limiter.explain(target).causes[3].key).toBe("x.org");
  });

  it("says which answer caused a cooldown", async () => {
    const { limiter } = keyRig({ minDelay: 1 });
    (await limiter.acquire()).release({ status: 429, headers: { "retry-after": "30" } });
    const [cause] = limiter.explain().causes;
    expect(cause).toMatchObject({ limit: "cooldown", waitMs: 30_000 });
    expect(cause.because).toMatch(/429/);
    expect(cause.because).toMatch(/30/);
  });

  it("counts those ahead in the same lane", () => {
    const { limiter } = keyRig({ minDelay: "1s" });
    void many(4, () => track(limiter.acquire()));
    expect(limiter.explain()).toMatchObject({ ahead: 3, proceed: false, waitMs: 4_000 });
  });

  it("names concurrency, pauses, quotas and the probe", async () => {
    const { clock, limiter } = rig({
      hosts: {
        "busy.org": { concurrency: 1 },
        "spent.org": { quota: { count: 1, per: "hour" } },
        "held.org": { minDelay: 1 },
      },
      default: { minDelay: 1 },
    });
    await Promise.all([limiter.acquire("busy.org"), limiter.acquire("spent.org")]);
    limiter.pause("paused.org", "1min");
    (await limiter.acquire("held.org")).release({ kind: "rate_limited", retryAfterMs: 1_000 });
    await clock.advance(1_000);
    await limiter.acquire("held.org");
    await clock.advance(10);
    const first = (host: string): string | undefined => limiter.explain(host).causes[0]?.limit;
    expect(first("busy.org")).toBe("concurrency");
    expect(first("spent.org")).toBe("quota");
    expect(first("paused.org")).toBe("pause");
    expect(first("held.org")).toBe("probe");
  });

  it("takes nothing and leaves no trace", () => {
    const { limiter } = rig({ default: { window: "1/min" } });
    limiter.explain("x.org");
    expect(limiter.stats("x.org")).toBeUndefined();
    expect(limiter.tryAcquire("x.org")).toBeDefined();
  });
});
