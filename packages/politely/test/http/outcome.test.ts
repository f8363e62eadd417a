import { describe, expect, it } from "vitest";
import { maxDurationUs } from "../../src/core/rule.js";
import type { HeaderReader } from "../../src/http/headers/answerHeaders.js";
import { NEUTRAL, readOutcome } from "../../src/http/outcome.js";
import { type Limiter, type PolicyInput, politely } from "../../src/index.js";
import type { Outcome } from "../../src/types.js";

/** Reads an outcome where headers say what `said` does. */
function read(outcome: Outcome | undefined, said = { retryAfterUs: 0, isExhausted: false, field: "" }) {
  return readOutcome(outcome, { readHeaders: () => ({ remaining: -1, resetUs: 0, ...said }), wallMs: () => 0 });
}

/** An outcome as a program without types might give it. */
function untyped(value: unknown): Outcome {
  return value as Outcome;
}

describe("an outcome", () => {
  it("that is not given is neutral", () => {
    expect(read(undefined)).toBe(NEUTRAL);
    expect(NEUTRAL).toEqual({ kind: "neutral", retryAfterUs: 0, because: "no outcome", scope: undefined });
  });

  it.each([
    ["success", "success"],
    ["rate_limited", "too many requests"],
    ["server_error", "server error"],
    ["timeout", "no answer in time"],
    ["unused", "never sent"],
  ] as const)("of the word %s reads the same as an object of that kind", (kind, because) => {
    const answer = { kind, retryAfterUs: 0, because, scope: undefined };
    expect([read(kind), read({ kind })]).toEqual([answer, answer]);
  });

  it("may name a scope, and how long to stay away", () => {
    expect(read({ kind: "rate_limited", retryAfterMs: 1_500, scope: "global" })).toEqual({
      kind: "rate_limited",
      retryAfterUs: 1_500_000,
      because: "too many requests, Retry-After 1.5 s",
      scope: "global",
    });
  });

  it.each([
    [0.0001, 1],
    [1.0005, 1_001],
    [0, 0],
    [-5, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, maxDurationUs],
    [1e300, maxDurationUs],
    [9_007_199_254_740_991, maxDurationUs],
  ])(
    "asking for %s ms holds for %s µs: rounded up, 100 years at most, and nonsense counts as absent",
    (retryAfterMs, retryAfterUs) => {
      expect(read({ kind: "rate_limited", retryAfterMs }).retryAfterUs).toBe(retryAfterUs);
    },
  );

  it.each([
    [200, "success", "200"],
    [304, "success", "304"],
    [404, "neutral", "404"],
    [429, "rate_limited", "429"],
    [503, "server_error", "503"],
  ])("of status %s without headers is %s", (status, kind, because) => {
    expect(read({ status })).toEqual({ kind, retryAfterUs: 0, because, scope: undefined });
  });

  it("of status 503, 403 or 413 is too many requests when its headers say to wait, and of 403 too when nothing remains", () => {
    const headers = new Headers();
    const waiting = { retryAfterUs: 30_000_000, isExhausted: false, field: "retry-after" };
    expect(read({ status: 503, headers }, waiting)).toMatchObject({
      kind: "rate_limited",
      because: "503, Retry-After 30 s",
    });
    expect(read({ status: 403, headers }, { retryAfterUs: 0, isExhausted: true, field: "" }).kind).toBe("rate_limited");
    expect(read({ status: 413, headers }, waiting).kind).toBe("rate_limited");
    expect(read({ status: 413, headers }, { retryAfterUs: 0, isExhausted: true, field: "" }).kind).toBe("neutral");
    for (const status of [403, 413]) expect(read({ status, headers }).kind).toBe("neutral");
  });

  it("gives its headers, its status and the wall clock to whoever reads headers, and only when it has some", () => {
    const calls: unknown[] = [];
    const reader: HeaderReader = (...given) => {
      calls.push(given);
      return { retryAfterUs: 7, isExhausted: false, remaining: -1, resetUs: 0, field: "" };
    };
    const headers = new Headers({ "retry-after": "1" });
    expect(readOutcome({ status: 429, headers }, { readHeaders: reader, wallMs: () => 42 }).retryAfterUs).toBe(7);
    readOutcome({ status: 429 }, { readHeaders: reader, wallMs: () => expect.unreachable() });
    expect(calls).toEqual([[headers, expect.any(Function), 429]]);
  });

  it.each([
    ["an unknown word", "great", "got great"],
    ["an unknown kind", { kind: "great" }, "got great"],
    ["a kind that only the engine uses", "neutral", "got neutral"],
    ["a number", 200, "got 200"],
    ["null", null, "got null"],
    ["a status with decimals", { status: 200.5 }, "got 200.5"],
    ["a status that is text", { status: "200" }, "got 200"],
    ["an object that says nothing", {}, "got undefined"],
  ])("that is none is a TypeError that says so: %s", (_, value, message) => {
    expect(() => read(untyped(value))).toThrow(TypeError);
    expect(() => read(untyped(value))).toThrow(message);
  });
});

describe("what a task of run returns or throws", () => {
  const late = { "retry-after": "30" };
  const headers = new Headers(late);
  it.each<[string, object]>([
    ["a Response", new Response("", { status: 429, headers })],
    ["an error of axios", { response: { status: 429, headers: late } }],
    ["an error of got", { response: { statusCode: 429, headers: late } }],
    ["an APICallError of the AI SDK", { statusCode: 429, responseHeaders: late }],
    ["a RetryError of the AI SDK", { lastError: { statusCode: 429, responseHeaders: late } }],
    ["an error of AWS", { $metadata: { httpStatusCode: 429 }, $response: { statusCode: 429, headers: late } }],
    ["an error of Slack", { code: "slack_webapi_rate_limited_error", retryAfter: 30 }],
    ["a response of Playwright", { status: () => 429, statusText: () => "", headers: () => late }],
  ])("is read: %s", async (_name, value) => {
    const thrown = Object.assign(new Error("no"), value instanceof Response ? { response: value } : value);
    for (const task of [async () => value, () => Promise.reject(thrown)]) {
      const polite = politely({ default: { concurrency: 1 } });
      await polite.run("a.example", task).catch(() => undefined);
      expect(polite.stats("a.example")).toMatchObject({ throttledRequests: 1 });
      expect(polite.check("a.example").waitMs).toBeGreaterThan(29_000);
    }
  });

  it.each<[string, object]>([
    ["an answer that is not to be read", { status: 3 }],
    ["a server's response that sets a status", { status: () => ({}), headers: {} }],
    [
      "a status that throws",
      {
        get status(): number {
          throw new Error("odd");
        },
      },
    ],
  ])("is a success where it says nothing of a request: %s", async (_name, value) => {
    const polite = politely({ default: { concurrency: 1 } });
    await polite.run("a.example", () => value);
    expect(polite.stats("a.example")).toMatchObject({ throttledRequests: 0, inFlight: 0 });
  });
});

describe("an answer that speaks of a scope", () => {
  const POLICY: PolicyInput = {
    default: { concurrency: 9, rate: "9/s", burst: 9 },
    scopes: { "key:*": { concurrency: 9 } },
  };
  const target = { host: "a.example", scopes: ["key:A"] };
  const status = { status: 429, headers: { "retry-after": "30" } };

  /** Whether the host and another key may go on, and this key may not. */
  function expectHeld(polite: Limiter): void {
    expect(polite.check("a.example").proceed).toBe(true);
    expect(polite.check({ host: "a.example", scopes: ["key:B"] }).proceed).toBe(true);
    expect(polite.check(target).waitMs).toBeGreaterThan(29_000);
  }

  it("holds that alone: release with a status", async () => {
    const polite = politely(POLICY);
    (await polite.acquire(target)).release({ ...status, scope: "key:A" });
    expectHeld(polite);
  });

  it.each(["Retry-After 30 s", undefined])("holds that alone: run whose task reports it, %s", async (wait) => {
    const polite = politely(POLICY);
    await polite.run(target, (permit) => {
      permit.report({ kind: "rate_limited", scope: "key:A", ...(wait && { retryAfterMs: 30_000 }) });
      return status;
    });
    expectHeld(polite);
  });
});
