import { describe, expect, it } from "vitest";
import type { Limiter, Permit, PolicyInput } from "../../src/index.js";
import { expectBooks, granted, many, rig } from "../verbs/support.js";

const policy: PolicyInput = {
  default: { rate: "1/s" },
  scopes: { "proxy:*": { concurrency: 1, maxHold: "1s" } },
};

/** A permit of that host through that proxy. */
function through(limiter: Limiter, host: string, proxy: string): Permit {
  return granted(limiter.tryAcquire({ host, scopes: [proxy] }));
}

/** How many of `count` hosts never seen before may start once. */
function freshStarts(limiter: Limiter, count: number): number {
  return many(count, (index) => limiter.tryAcquire(`fresh${index}.example`)).filter((permit) => permit !== undefined)
    .length;
}

describe("a late answer about a scope whose place has lapsed and whose row is gone", () => {
  it("holds the scope, and no host that has taken the row since", async () => {
    const { clock, limiter } = rig(policy);
    const permit = through(limiter, "a.example", "proxy:x");
    await clock.advance(5_000);
    limiter.stats();
    granted(limiter.tryAcquire("victim.example"));
    await clock.advance(5_000);
    permit.release({ kind: "rate_limited", scope: "proxy:x" });
    expect(limiter.check("victim.example").proceed).toBe(true);
    expect(limiter.check({ host: "z.example", scopes: ["proxy:x"] }).proceed).toBe(false);
    expect(limiter.check({ host: "z.example", scopes: ["proxy:y"] }).proceed).toBe(true);
  });

  it("leaves every new host a row of its own", async () => {
    const { clock, limiter } = rig(policy);
    const permit = through(limiter, "a.example", "proxy:x");
    await clock.advance(5_000);
    limiter.stats();
    permit.release({ kind: "rate_limited", scope: "proxy:x" });
    expect(freshStarts(limiter, 30)).toBe(30);
    for (const stats of limiter.stats()) expectBooks(stats);
  });

  it.each([
    { title: "one such answer, with other rows in use", proxies: 1, kept: 1, isReversed: false },
    { title: "two, the later permit first", proxies: 2, kept: 3, isReversed: true },
    { title: "four, the later permits first", proxies: 4, kept: 1, isReversed: true },
    { title: "four, in the order of their starts", proxies: 4, kept: 1, isReversed: false },
  ])("leaves every new host a row of its own, without statistics: $title", async ({ proxies, kept, isReversed }) => {
    const { clock, limiter } = rig(policy, { keepStats: 0 });
    granted(limiter.tryAcquire("released.example")).release();
    for (let index = 0; index < kept; index += 1) granted(limiter.tryAcquire(`kept${index}.example`));
    const late = many(proxies, (index) => ({
      scope: `proxy:${index}`,
      permit: through(limiter, `p${index}.example`, `proxy:${index}`),
    }));
    await clock.advance(5_000);
    // Each look drops what owes nothing any more.
    for (let look = 0; look < 4; look += 1) limiter.stats();
    for (const { permit, scope } of isReversed ? late.toReversed() : late)
      permit.release({ kind: "rate_limited", scope });
    expect(freshStarts(limiter, 40)).toBe(40);
    for (const { scope } of late) expect(limiter.check({ host: "z.example", scopes: [scope] }).proceed).toBe(false);
    for (const stats of limiter.stats()) expectBooks(stats);
  });
});
