import { describe, expect, it } from "vitest";
import { nothingSaid, readStandardAnswer } from "../../src/http/headers/answerHeaders.js";
import { readAnswer } from "../../src/http/readAnswer.js";

const wallMs = Date.UTC(2026, 2, 1);
const hourUs = 3_600_000_000;
const limiting = [429, 418, 420, 509, 529, 403];

describe("readAnswer", () => {
  it("gives the same frozen object for every answer that says nothing", () => {
    const date = "Sun, 01 Mar 2026 00:00:00 GMT";
    for (const headers of [{}, new Headers({ date, server: "x" }), { date, age: "5" }, { "retry-after": "0" }, []]) {
      expect(readAnswer(headers, wallMs, 429)).toBe(nothingSaid);
    }
    expect(Object.isFrozen(nothingSaid)).toBe(true);
  });

  it("says what remains, of how much, until when, and where that stands", () => {
    const headers = {
      "X-RateLimit-Limit": "60",
      "X-RateLimit-Remaining": "3",
      "X-RateLimit-Reset": "30",
      "X-RateLimit-Window": "60",
    };
    expect(readAnswer(headers, wallMs, 200)).toEqual({
      retryAfterUs: 0,
      isExhausted: false,
      remaining: 3,
      resetUs: 30_000_000,
      field: "x-ratelimit-*",
    });
  });

  it.each(limiting)("waits for the reset of the empty bucket after a %d without a retry hint", (status) => {
    const empty = { RateLimit: '"a";r=0;t=3600, "b";r=0;t=60' };
    expect(readAnswer(empty, wallMs, status)).toMatchObject({
      retryAfterUs: hourUs,
      isExhausted: true,
      resetUs: hourUs,
      field: "ratelimit",
    });
    expect(readAnswer({ ...empty, "Retry-After": "5" }, wallMs, status)).toMatchObject({
      retryAfterUs: 5_000_000,
      isExhausted: true,
      resetUs: hourUs,
      field: "retry-after",
    });
    expect(readAnswer({ ...empty, "Retry-After": "0" }, wallMs, status).retryAfterUs).toBe(hourUs);
    expect(readAnswer({ RateLimit: '"a";r=1;t=3600' }, wallMs, status).retryAfterUs).toBe(0);
    expect(readAnswer({ RateLimit: '"a";r=0' }, wallMs, status)).toMatchObject({ retryAfterUs: 0, isExhausted: true });
  });

  it.each([200, 301, 404, 500])("says that a bucket is empty after a %d, and asks for no wait", (status) => {
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60" };
    expect(readAnswer(headers, wallMs, status)).toMatchObject({
      retryAfterUs: 0,
      isExhausted: true,
      resetUs: 60_000_000,
    });
  });

  it("takes a rest that is unknown for not empty", () => {
    const headers = { "x-ratelimit-limit": "5", "x-ratelimit-remaining": "-1", "x-ratelimit-reset": "60" };
    expect(readAnswer(headers, wallMs, 429)).toMatchObject({ isExhausted: false, remaining: -1, retryAfterUs: 0 });
  });

  it("ignores the quotas of a cached answer, and not its retry hint", () => {
    const headers = { age: "7", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60" };
    expect(readAnswer(headers, wallMs, 429)).toBe(nothingSaid);
    expect(readAnswer({ ...headers, "retry-after": "3" }, wallMs, 429)).toEqual({
      ...nothingSaid,
      retryAfterUs: 3_000_000,
      field: "retry-after",
    });
  });

  it("gives no time beyond 100 years", () => {
    const century = 36_525 * 24 * hourUs;
    const endless = "9".repeat(30);
    const headers = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": endless, "x-ratelimit-window": endless };
    expect(readAnswer(headers, wallMs, 429)).toMatchObject({
      retryAfterUs: century,
      resetUs: century,
    });
  });

  it.each([
    [{ "anthropic-ratelimit-requests-remaining": "5" }, "anthropic-ratelimit-requests-*"],
    [{ "x-ratelimit-remaining-requests": "5" }, "x-ratelimit-*-requests"],
    [{ "X-RateLimit-UserRemaining": "5" }, "x-ratelimit-user*"],
    [{ "RateLimit-Remaining": "5" }, "ratelimit-*"],
    [{ RateLimit: "limit=5, remaining=5, reset=1" }, "ratelimit"],
    [{ "X-Shopify-Shop-Api-Call-Limit": "1/2" }, "x-shopify-shop-api-call-limit"],
    [{ "X-Rate-Limit": "5" }, "x-rate-limit"],
    [{ "retry-after-ms": "5" }, "retry-after-ms"],
  ])("names the family of %j", (headers, field) => {
    expect(readAnswer(headers, wallMs, 200).field).toBe(field);
  });
});

describe("readAnswer, budgets of something else than the host's requests", () => {
  const tokens = { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "60" };

  it.each([
    tokens,
    { "x-ratelimit-limit-tokens": "90000", ...tokens },
    { "anthropic-ratelimit-input-tokens-limit": "5", "anthropic-ratelimit-input-tokens-remaining": "0" },
    { "x-ratelimit-complexity-limit": "5", "x-ratelimit-complexity-remaining": "0" },
    { RateLimit: '"tokens";r=0;t=60' },
    { RateLimit: '"x";r=0;t=60', "RateLimit-Policy": '"x";q=100;w=60;qu="tokens"' },
    { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60", "x-ratelimit-resource": "search" },
    { "x-rate-limit-member-max": "300", "x-rate-limit-member-remaining": "0" },
  ])("says nothing of %j", (headers) => {
    for (const status of [200, 403, 429]) {
      expect(readAnswer(headers, wallMs, status)).toBe(nothingSaid);
      expect(readStandardAnswer(headers, wallMs, status)).toBe(nothingSaid);
    }
  });

  it("lets the requests bind, however little of something else is left", () => {
    const requests = { "x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "30" };
    const said = { remaining: 7, resetUs: 30_000_000, isExhausted: false };
    expect(readAnswer({ ...tokens, ...requests }, wallMs, 200)).toMatchObject(said);
    const common = { "x-ratelimit-remaining": "7", "x-ratelimit-reset": "30" };
    expect(readAnswer({ ...tokens, ...common }, wallMs, 200)).toMatchObject(said);
    expect(readAnswer({ ...common, "x-ratelimit-resource": "core" }, wallMs, 200)).toMatchObject(said);
    expect(readAnswer({ RateLimit: '"tokens";r=0;t=9, "default";r=7;t=30' }, wallMs, 200)).toMatchObject(said);
  });
});

describe("readStandardAnswer", () => {
  it("reads Retry-After, RateLimit of every draft and X-RateLimit-*", () => {
    const said = { remaining: 7, resetUs: 30_000_000 };
    expect(readStandardAnswer({ "Retry-After": "5" }, wallMs, 429).retryAfterUs).toBe(5_000_000);
    for (const headers of [
      { RateLimit: '"a";r=7;t=30' },
      { RateLimit: "limit=10, remaining=7, reset=30" },
      { "RateLimit-Remaining": "7", "RateLimit-Reset": "30" },
      { "X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "30" },
      { "X-Rate-Limit-Remaining": "7", "X-Rate-Limit-Reset": "30" },
    ]) {
      expect(readStandardAnswer(headers, wallMs, 200)).toMatchObject(said);
    }
  });

  it("does not know the fields of vendors", () => {
    for (const headers of [
      { "retry-after-ms": "5" },
      { "x-rl": "0", "x-ttl": "5" },
      { "x-acme-ratelimit-remaining": "0" },
    ]) {
      expect(readStandardAnswer(headers, wallMs, 429)).toBe(nothingSaid);
    }
  });
});

describe("readAnswer, headers that only answer when asked", () => {
  it("finds the common families, the drafts and the waits", () => {
    const ask = (fields: Readonly<Record<string, string>>): { get(name: string): string | null } => ({
      get: (name) => fields[name] ?? null,
    });
    expect(readAnswer(ask({ "retry-after": "2" }), wallMs, 429).retryAfterUs).toBe(2_000_000);
    expect(readAnswer(ask({ "x-ratelimit-remaining": "2" }), wallMs, 200).remaining).toBe(2);
    expect(readAnswer(ask({ ratelimit: '"a";r=2;t=3' }), wallMs, 200).resetUs).toBe(3_000_000);
    expect(readAnswer(ask({ "x-shopify-shop-api-call-limit": "1/2" }), wallMs, 200).remaining).toBe(1);
    expect(readAnswer(ask({ "x-ratelimit-remaining": "2", age: "1" }), wallMs, 200)).toBe(nothingSaid);
    const date = "Sun, 01 Mar 2026 01:00:00 GMT";
    const reset = String(wallMs / 1_000 + 3_607);
    expect(readAnswer(ask({ "x-ratelimit-reset": reset, date }), wallMs, 200).resetUs).toBe(7_000_000);
  });
});
