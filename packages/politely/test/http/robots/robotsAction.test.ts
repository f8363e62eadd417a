import { describe, expect, it } from "vitest";
import { type RobotsFetchOutcome, robotsAction } from "../../../src/http/robots/index.js";
import type { HeadersLike } from "../../../src/types.js";
import cases from "../../fixtures/robots-fetch.json" with { type: "json" };

describe("robotsAction", () => {
  it.each(cases)("says $expect: $why ($tier)", ({ expect: action, tier: _tier, why: _why, ...outcome }) => {
    expect(robotsAction(outcome)).toBe(action);
  });

  it.each<[string, string, RobotsFetchOutcome]>([
    ["parse", "any success", { status: 204 }],
    ["parse", "a body above the limit", { status: 200, bodyBytes: 10_000_000 }],
    ["parse", "an empty body", { status: 200, bodyBytes: 0 }],
    ["parse", "five redirects", { redirects: 5, finalStatus: 200 }],
    ["parse", "a redirect to another host", { status: 301, redirects: 1, crossHost: true, finalStatus: 200 }],
    ["parse", "a success in place of the copy", { status: 200, cachedAgeHours: 1 }],
    ["parse", "a success with a Retry-After", { status: 200, headers: { "Retry-After": "5" } }],
    ["allow-all", "six redirects", { redirects: 6, finalStatus: 200 }],
    ["allow-all", "six redirects and no end", { status: 302, redirects: 6 }],
    ["allow-all", "a redirect that leads nowhere", { status: 301 }],
    ["allow-all", "a redirect to something that is not there", { redirects: 1, finalStatus: 404 }],
    ["allow-all", "a file that is gone, whatever the copy says", { status: 410, cachedAgeHours: 1 }],
    ["allow-all", "a file for others only", { status: 401 }],
    ["allow-all", "a file for nobody", { status: 403 }],
    ["allow-all", "a server error that has lasted 30 days", { status: 500, unreachableDays: 30 }],
    ["allow-all", "no answer for a year", { networkError: "ETIMEDOUT", unreachableDays: 365 }],
    ["disallow-all", "a server error that has lasted 29 days", { status: 500, unreachableDays: 29.9 }],
    ["disallow-all", "a redirect to a server error", { redirects: 1, finalStatus: 502 }],
    ["disallow-all", "no such host", { networkError: "ENOTFOUND" }],
    ["disallow-all", "a body that broke off", { status: 200, networkError: "ECONNRESET" }],
    ["disallow-all", "a 304 without a copy", { status: 304 }],
    ["disallow-all", "a status that does not exist", { status: 999 }],
    ["disallow-all", "nothing at all", {}],
    ["disallow-all", "a 503 whose Retry-After says nothing", { status: 503, headers: { "Retry-After": "0" } }],
    ["use-cached", "a 304", { status: 304, cachedAgeHours: 30 }],
    ["use-cached", "no answer, and a copy of any age", { networkError: "EAI_AGAIN", cachedAgeHours: 5_000 }],
    ["use-cached", "no answer for a month, and a copy", { status: 503, cachedAgeHours: 800, unreachableDays: 40 }],
    ["use-cached", "a copy, and nothing asked", { cachedAgeHours: 24 }],
    ["defer", "a 429, whatever the copy says", { status: 429, cachedAgeHours: 1 }],
    ["defer", "a 429 after a redirect", { redirects: 1, finalStatus: 429 }],
    ["defer", "an overloaded site", { status: 529 }],
    ["defer", "a 503 with Retry-After", { status: 503, headers: { "retry-after": 120 } }],
    ["defer", "a 403 with Retry-After", { status: 403, headers: { "Retry-After": "Sun, 01 Mar 2026 00:00:05 GMT" } }],
  ])("says %s for %s", (action, _title, outcome) => {
    expect(robotsAction(outcome)).toBe(action);
  });

  it("reads headers of any kind, and takes those that fail for absent", () => {
    const action = (headers: unknown): string => robotsAction({ status: 503, headers: headers as HeadersLike });
    expect(action(new Headers({ "Retry-After": "60" }))).toBe("defer");
    expect(action(new Map([["retry-after", "60"]]))).toBe("defer");
    for (const value of ["", "0", "-5", "soon", null, undefined])
      expect(action({ "Retry-After": value })).toBe("disallow-all");
    expect(action(new Headers())).toBe("disallow-all");
    expect(action(null)).toBe("disallow-all");
    const fail = (): never => {
      throw new Error("no headers here");
    };
    expect(action({ get: fail })).toBe("disallow-all");
  });

  it("takes null, which JSON has for absent, for absent", () => {
    const outcome = JSON.parse(
      '{"status":503,"networkError":null,"finalStatus":null,"cachedAgeHours":null,"redirects":null}',
    );
    expect(robotsAction(outcome as RobotsFetchOutcome)).toBe("disallow-all");
  });
});
