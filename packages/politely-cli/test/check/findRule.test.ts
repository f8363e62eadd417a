import fc from "fast-check";
import "politely/domains";
import { type HostLimits, type PolicyInput, politely } from "politely";
import { collector, presets } from "politely/presets";
import { VirtualClock } from "politely/testing";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { ruleFinder } from "../../src/check/findRule.js";
import { standing } from "../../src/check/limitWords.js";
import { durationMs } from "../../src/policy/rateParts.js";
import { treatmentOf } from "./engine.js";

/** Limits that behave differently from one another, so that a wrong rule shows. */
const limits: fc.Arbitrary<HostLimits> = fc.oneof(
  fc.record({ minDelay: fc.integer({ min: 1, max: 5_000 }) }),
  fc.record({
    window: fc.integer({ min: 1, max: 8 }).map((count) => `${count}/min` as const),
    concurrency: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({
    rate: fc.integer({ min: 1, max: 50 }).map((count) => `${count}/s` as const),
    burst: fc.integer({ min: 1, max: 8 }),
  }),
  fc.record({
    minDelay: fc.integer({ min: 1, max: 5_000 }),
    intents: fc.constant({ search: { window: "1/h" } as const }),
  }),
  fc.record({ enabled: fc.constant(false), minDelay: fc.constant(700) }),
);

const hosts = [
  "x.org",
  "a.x.org",
  "b.a.x.org",
  "x.org:8443",
  "münchen.de",
  "www.münchen.de",
  "127.0.0.1",
  "localhost",
  "app.localhost",
  "[::1]",
  "10.0.0.7",
  "arxiv.org",
  "en.wikipedia.org",
  "www.reuters.com",
  "finance.yahoo.com",
  "eia.gov",
  "a.b.co.uk",
] as const;

/** The same host as other people write it. */
const spelled = fc
  .tuple(fc.constantFrom(...hosts), fc.constantFrom("as it is", "upper case", "trailing dot"))
  .map(([host, how]) => {
    if (how === "upper case") return host.toUpperCase();
    return how === "trailing dot" && /^[^:[]*[a-z]$/.test(host) ? `${host}.` : host;
  });

const target = fc
  .tuple(spelled, fc.constantFrom("", "https://", "http://"))
  .map(([host, scheme]) => (scheme === "" ? host : `${scheme}${host}/path?q=1`));

const pattern = fc
  .tuple(fc.constantFrom("", "*."), spelled)
  .map(([star, host]) => (/[:[]|\d$/.test(host) ? host : star + host));

/** No host twice in two spellings, which a policy refuses. */
const entries = fc
  .uniqueArray(fc.tuple(pattern, limits), {
    maxLength: 5,
    selector: ([name]) => name.toLowerCase().replace(/\.$/, ""),
  })
  .map((list) => Object.fromEntries(list));

const policy: fc.Arbitrary<PolicyInput> = fc.record(
  {
    default: limits.filter(({ intents }) => intents === undefined),
    hosts: entries,
    global: fc.constantFrom({ minDelay: 50 }, { concurrency: 4 }),
    groupBy: fc.constantFrom("host", "domain"),
    localhost: fc.constantFrom("limited", "unlimited"),
    presets: fc.oneof(
      fc.constant(true as const),
      fc.subarray(["arxiv", "wikimedia-action-api", "reuters", "yahoo-finance", collector.id]),
    ),
  },
  { requiredKeys: [] },
);

describe("the rule that is found", () => {
  it("limits a host of its own just as the policy limits the host it was found for", async () => {
    await fc.assert(
      fc.asyncProperty(policy, target, fc.constantFrom(undefined, "search"), async (given, host, intent) => {
        const { rule, limits: found } = ruleFinder(given)(host);
        const isExempt = rule.kind === "localhost";
        const alone: PolicyInput = isExempt
          ? { default: { enabled: false } }
          : { hosts: { "alone.test": found }, global: given.global };
        expect(await treatmentOf(alone, "alone.test", intent)).toEqual(await treatmentOf(given, host, intent));
      }),
      seeded(200),
    );
  });

  const known: PolicyInput = {
    hosts: {
      "*.X.org": { minDelay: 1 },
      "a.x.org": { minDelay: 2 },
      "*.münchen.de": { minDelay: 3 },
      "x.org:8443": { minDelay: 4 },
    },
    presets: ["wikimedia-action-api", "collector"],
  };
  it.each([
    ["a.x.org", { kind: "host", name: "a.x.org" }],
    ["https://b.a.x.org/", { kind: "wildcard", name: "*.X.org" }],
    ["b.x.org/path", { kind: "wildcard", name: "*.X.org" }],
    ["www.MÜNCHEN.de", { kind: "wildcard", name: "*.münchen.de" }],
    ["https://x.org:8443/", { kind: "host", name: "x.org:8443" }],
    ["x.org:8443/path", { kind: "host", name: "x.org:8443" }],
    [
      "en.wikipedia.org",
      { kind: "preset", name: "*.wikipedia.org", preset: presets.find(({ id }) => id === "wikimedia-action-api") },
    ],
    ["reuters.com", { kind: "preset", name: "reuters.com", preset: collector }],
    ["x.org", { kind: "preset", preset: collector }],
    ["localhost:3000", { kind: "localhost" }],
  ])("of %s is told with the name as it is written", (host, rule) => {
    expect(ruleFinder(known)(host).rule).toEqual(rule);
  });

  it.each(["", "a b", "https://", "x..org", "http://x.org:99999/"])("is not looked for where %j is no host", (host) => {
    expect(() => ruleFinder({})(host)).toThrow("--explain takes a host or a URL");
  });
});

describe("what stands without being said", () => {
  it("is how long the limiter stays away after a 429 and after server errors", async () => {
    for (const answer of ["rate_limited", "server_error"] as const) {
      const told = await heldAfter({ rate: "50/s", ...standing }, answer);
      expect(await heldAfter({ rate: "50/s" }, answer)).toEqual(told);
      expect(told[0]).toBeGreaterThan(0);
    }
  });

  it("is how many requests may wait, and how long a place is kept", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ hosts: { "x.org": { concurrency: 1 } } }, { clock });
    await limiter.acquire("x.org");
    const second = limiter.acquire("x.org");
    const more = Array.from({ length: standing.maxQueue }, () =>
      limiter.acquire("x.org").catch((error: unknown) => error),
    );
    expect(await more.at(-1)).toMatchObject({ code: "POLITELY_QUEUE_FULL", limit: standing.maxQueue });
    await clock.advance(durationMs(standing.maxHold) + 1);
    expect((await second).waitedMs).toBe(durationMs(standing.maxHold));
    limiter.cancelWaiting();
    await limiter.close();
  });
});

describe("a host that no entry fits", () => {
  it("gets the default, or a start per second where there is none", () => {
    expect(ruleFinder({ default: { minDelay: 5 } })("x.org")).toEqual({
      key: "x.org",
      rule: { kind: "default" },
      limits: { minDelay: 5 },
    });
    expect(ruleFinder({})("x.org")).toEqual({ key: "x.org", rule: { kind: "built-in" }, limits: { rate: "1/s" } });
  });
});

/** How long a host is left alone after one, two and three such answers. */
async function heldAfter(own: HostLimits, answer: "rate_limited" | "server_error"): Promise<readonly number[]> {
  const clock = new VirtualClock();
  const limiter = politely({ hosts: { "x.org": own } }, { clock });
  const held: number[] = [];
  for (let round = 0; round < 3; round++) {
    const acquired = limiter.acquire("x.org");
    await clock.runToEnd();
    (await acquired).release(answer);
    held.push(limiter.stats("x.org")?.cooldownMs ?? 0);
  }
  return held;
}
