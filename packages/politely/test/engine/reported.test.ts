import { describe, expect, it } from "vitest";
import { type Limiter, type LimiterEvent, type Outcome, type PolicyInput, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const host = "a.example";

function rig(policy: PolicyInput = { default: { cooldown: ["10s", "20s", "40s"] } }) {
  const clock = new VirtualClock();
  const limiter = politely(policy, { clock });
  const events: LimiterEvent[] = [];
  limiter.subscribe((event) => events.push(event));
  return { clock, limiter, events };
}

function throttled(limiter: Limiter): number | undefined {
  return limiter.stats(host)?.throttledRequests;
}

function tooMany(retryAfter?: string): Response {
  return new Response(null, {
    status: 429,
    ...(retryAfter === undefined ? {} : { headers: { "Retry-After": retryAfter } }),
  });
}

describe("an answer that a task reports and then returns", () => {
  it("is one answer: one throttled request, one cooldown, and the release still says how it ended", async () => {
    const { clock, limiter, events } = rig();
    const answer = tooMany("30");
    await limiter.run(host, async (permit) => {
      permit.report(answer);
      await clock.advance(4000);
      return answer;
    });
    expect(throttled(limiter)).toBe(1);
    expect(events.filter(({ type }) => type === "cooldown")).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: "release", outcome: "rate_limited" });
    // 30 s from when it was heard, not from when its body had been read.
    expect(limiter.stats(host)?.cooldownMs).toBe(26_000);
  });

  it("is one answer as well when it is thrown inside an error", async () => {
    const { clock, limiter } = rig();
    const response = { status: 429, headers: { "retry-after": "30" } };
    const failing = limiter.run(host, async (permit) => {
      permit.report(response);
      await clock.advance(4000);
      throw Object.assign(new Error("Request failed with status code 429"), { response });
    });
    await expect(failing).rejects.toThrow("429");
    expect(throttled(limiter)).toBe(1);
    expect(limiter.stats(host)?.cooldownMs).toBe(26_000);
  });

  it("does not begin a second incident when the first has ended meanwhile", async () => {
    const { clock, limiter } = rig();
    const answer = tooMany();
    await limiter.run(host, async (permit) => {
      permit.report(answer);
      await clock.advance(10_000);
      await limiter.run(host, () => "fine");
      return answer;
    });
    expect(limiter.stats(host)?.cooldownMs).toBe(0);
    expect(throttled(limiter)).toBe(1);
  });

  it("is not read again by a date that has passed meanwhile", async () => {
    const { clock, limiter } = rig();
    const answer = tooMany(new Date(clock.wall() + 2000).toUTCString());
    await limiter.run(host, async (permit) => {
      permit.report(answer);
      await clock.advance(5000);
      return answer;
    });
    expect(limiter.stats(host)?.cooldownMs).toBe(0);
  });

  it.each<[string, Outcome, Outcome]>([
    ["its status alone", { status: 429, headers: { "retry-after": "30" } }, { status: 429 }],
    ["a word", { status: 429, headers: { "retry-after": "30" } }, "rate_limited"],
    ["the same word", "rate_limited", "rate_limited"],
    ["the same wait", { kind: "rate_limited", retryAfterMs: 30_000 }, { kind: "rate_limited", retryAfterMs: 30_000 }],
  ])("is one answer when the release gives %s", async (_, reported, released) => {
    const { clock, limiter, events } = rig({ default: { cooldown: ["30s"] } });
    const permit = await limiter.acquire(host);
    permit.report(reported);
    permit.report(released);
    await clock.advance(1000);
    permit.release(released);
    expect(throttled(limiter)).toBe(1);
    expect(limiter.stats(host)?.cooldownMs).toBe(29_000);
    expect(events.filter(({ type }) => type === "cooldown")).toHaveLength(1);
  });
});

describe("two different answers on one permit", () => {
  it("are both heard: the longer wait holds", async () => {
    const { clock, limiter } = rig();
    await limiter.run(host, async (permit) => {
      permit.report(tooMany("1"));
      await clock.advance(500);
      return tooMany("60");
    });
    expect(limiter.stats(host)?.cooldownMs).toBe(60_000);
    expect(throttled(limiter)).toBe(1);
  });

  it("are both heard when one is a server error and the other says too many requests", async () => {
    const { limiter, events } = rig();
    await limiter.run(host, (permit) => {
      permit.report({ status: 500 });
      return tooMany("60");
    });
    expect(events.filter(({ type }) => type === "cooldown")).toHaveLength(2);
    expect(throttled(limiter)).toBe(1);
  });
});
