import { describe, expect, it } from "vitest";
import { granted, rig } from "../verbs/support.js";

describe("statistics after a reset", () => {
  it.each([
    ["of one host", "a.example"],
    ["of everything", undefined],
  ] as const)("balance without statistics per host, scopes or not: %s", (_title, target) => {
    const { limiter } = rig({ default: { concurrency: 5 }, global: { concurrency: 50 } }, { keepStats: 0 });
    const permits = ["a.example", "b.example"].map((host) => granted(limiter.tryAcquire(host)));
    limiter.reset(target, "stats");
    expect(limiter.stats()).toMatchObject([{ granted: 2, inFlight: 2, released: 0, refused: 0 }]);
    for (const permit of permits) permit.release();
    expect(limiter.stats()).toMatchObject([{ granted: 2, inFlight: 0, released: 2 }]);
  });

  it("of the pace alone still say when the last request was, and how far apart they were", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    granted(limiter.tryAcquire("a.example")).release();
    await clock.advance(4_000);
    granted(limiter.tryAcquire("a.example")).release();
    const before = limiter.stats("a.example");
    limiter.reset("a.example");
    expect(limiter.stats("a.example")).toMatchObject({ lastRequestAt: before?.lastRequestAt, meanIntervalMs: 4_000 });
    expect(limiter.check("a.example").proceed).toBe(true);
    await clock.advance(2_000);
    granted(limiter.tryAcquire("a.example")).release();
    expect(limiter.stats("a.example")?.meanIntervalMs).toBe(3_000);
    limiter.reset("a.example", "all");
    expect(limiter.stats("a.example")).toMatchObject({ totalRequests: 0, meanIntervalMs: 0, granted: 0 });
  });
});
