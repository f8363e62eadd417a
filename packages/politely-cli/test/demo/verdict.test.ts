import type { OriginRequest } from "politely/testing";
import { describe, expect, it } from "vitest";
import type { DemoSite } from "../../src/demo/sites.js";
import { judge } from "../../src/demo/verdict.js";

const caller = { name: "polite", userAgent: "test/1.0" };

/** A site that noted requests at these instants. */
function site(arrivals: readonly number[], changes: Partial<OriginRequest> = {}): DemoSite {
  const requests = arrivals.map(
    (atMs, index): OriginRequest => ({
      atMs,
      method: "GET",
      url: `http://127.0.0.1:80/page/${index}`,
      host: "127.0.0.1",
      path: `/page/${index}`,
      headers: { "user-agent": caller.userAgent },
      index,
      status: 200,
      refusedBy: undefined,
      trueWaitMs: 0,
      heldBackMs: 0,
      fault: undefined,
      ...changes,
    }),
  );
  return {
    name: "test",
    manners: "",
    host: "127.0.0.1:81",
    urls: ["a", "b", "c"],
    policy: {},
    rules: { window: "2/s" },
    requestsFrom: (userAgent) => (userAgent === caller.userAgent ? requests : []),
    close: () => Promise.resolve(),
  };
}

describe("judge", () => {
  it("counts what the site noted", () => {
    expect(judge(site([0, 300, 1_000]), caller)).toEqual({
      site: "test",
      caller: "polite",
      pages: 3,
      wanted: 3,
      requests: 3,
      throttled: 0,
      closestGapMs: 300,
      mostInASecond: 2,
      isKept: true,
      problems: [],
    });
  });

  it("finds a rule broken by one request a millisecond too early", () => {
    const verdict = judge(site([0, 300, 999]), caller);
    expect(verdict.mostInASecond).toBe(3);
    expect(verdict.isKept).toBe(false);
    expect(verdict.problems).toHaveLength(1);
    expect(verdict.problems[0]).toMatch(/3 .* 2 /);
  });

  it("finds a Retry-After that was ignored", () => {
    const verdict = judge(site([0, 2_000], { status: 429, trueWaitMs: 4_200 }), caller);
    expect(verdict.throttled).toBe(2);
    expect(verdict.problems).toEqual(["a Retry-After ignored once"]);
  });

  it("counts robots.txt as a request, and not as a page", () => {
    const verdict = judge(site([0], { path: "/robots.txt" }), caller);
    expect([verdict.requests, verdict.pages, verdict.closestGapMs]).toEqual([1, 0, undefined]);
  });

  it("knows nothing of other callers", () => {
    expect(judge(site([0, 1, 2]), { ...caller, userAgent: "other/1.0" }).requests).toBe(0);
  });
});
