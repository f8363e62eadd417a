import { describe, expect, it } from "vitest";
import {
  DeadlineError,
  type Limiter,
  type Limits,
  limit,
  type Outcome,
  type PolicyInput,
  politely,
} from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";

const host = "a.example";
const calm: Limits = { cooldown: 0, backoff: "none" };
const tenPerSecond: Limits = { rate: "10/s", adaptive: true, ...calm };

/** A limiter on a clock of its own, and requests one after the other. */
function talkTo(policy: PolicyInput, options: { maxKeys?: number; keepStats?: number } = {}) {
  const clock = new VirtualClock();
  const limiter = politely(policy, { ...options, clock });
  const talk = async (target: string, outcome: Outcome | undefined, times = 1, latencyMs = 100): Promise<void> => {
    for (let index = 0; index < times; index++) {
      const asked = limiter.acquire(target);
      await clock.advance(0);
      let permit = await Promise.race([asked, clock.settle().then(() => undefined)]);
      while (permit === undefined) {
        await clock.advance(Math.max(1, limiter.check(target).waitMs));
        permit = await Promise.race([asked, clock.settle().then(() => undefined)]);
      }
      await clock.advance(latencyMs);
      permit.release(outcome);
    }
  };
  return { clock, limiter, talk };
}

/** The least time between two starts that adapting asks for at a target right after a start, in milliseconds; 0 for none. */
function askedMs(limiter: Limiter, target: Parameters<Limiter["explain"]>[0]): number {
  return limiter.explain(target).causes.find(({ limit: kind }) => kind === "adaptive")?.waitMs ?? 0;
}

describe("a key with adaptive", () => {
  it("says which answers made it slower", async () => {
    const { limiter, talk } = talkTo({ default: tenPerSecond });
    await talk(host, "success", 7);
    await talk(host, { status: 429 }, 1, 10);
    const cause = limiter.explain(host).causes[0];
    expect(cause).toMatchObject({ limit: "adaptive", scope: "host", key: host, waitMs: 190 });
    expect(cause.because).toBe("1 of its last 8 answers was bad, the latest: 429");
    expect(cause.message).toBe(`${host}: slower for now, ${cause.because}, 190 ms to go`);
    expect(limiter.check(host).reason).toBe(cause.message);
  });

  it("says how slow the answers were that made it slower", async () => {
    const { limiter, talk } = talkTo({ default: tenPerSecond });
    await talk(host, "success", 40, 250);
    await talk(host, "success", 25, 2400);
    limiter.tryAcquire(host);
    const because = limiter.explain(host).causes.find(({ limit: kind }) => kind === "adaptive")?.because;
    expect(because).toMatch(/^answers take (\d+ ms|1(\.\d)? s), usually 2\d\d ms$/);
  });

  it("hears a plain success too, which otherwise nobody has to hear, and without the key next to it", async () => {
    const { limiter, talk } = talkTo({ default: { rate: "10/s", ...calm }, hosts: { [host]: tenPerSecond } });
    for (const [target, leastMs, mostMs] of [
      [host, 100, 1000],
      ["b.example", 0, 0],
    ] as const) {
      await talk(target, "success", 40);
      await talk(target, "success", 40, 900);
      limiter.tryAcquire(target)?.release();
      expect(askedMs(limiter, target)).toBeGreaterThanOrEqual(leastMs);
      expect(askedMs(limiter, target)).toBeLessThanOrEqual(mostMs);
    }
  });

  it("learns nothing from requests that were never sent, or of which nothing is said", async () => {
    const { limiter, talk } = talkTo({ default: tenPerSecond });
    await talk(host, "success", 40);
    await talk(host, "unused", 40, 900);
    await talk(host, undefined, 40, 900);
    await talk(host, { status: 404 }, 40, 900);
    limiter.tryAcquire(host)?.release();
    expect(askedMs(limiter, host)).toBe(0);
  });

  it("believes the latency that the caller gives, if it is one", async () => {
    for (const latencyMs of [-1, Number.NaN, -1e300, undefined]) {
      const { limiter, talk } = talkTo({ default: tenPerSecond });
      const outcome = { kind: "success" as const, ...(latencyMs === undefined ? {} : { latencyMs }) };
      await talk(host, outcome, 40);
      await talk(host, outcome, 40, 900);
      limiter.tryAcquire(host)?.release();
      expect(askedMs(limiter, host), `with ${latencyMs}`).toBeGreaterThan(100);
    }
    const { limiter, talk } = talkTo({ default: tenPerSecond });
    await talk(host, { kind: "success", latencyMs: 50 }, 40);
    await talk(host, { status: 200, latencyMs: 50 }, 40, 900);
    limiter.tryAcquire(host)?.release();
    expect(askedMs(limiter, host)).toBe(0);
  });

  it("learns from an answer that is reported while the place is kept", async () => {
    const { limiter, clock } = talkTo({ default: tenPerSecond });
    const permit = await limiter.acquire(host);
    await clock.advance(10);
    permit.report({ status: 429 });
    expect(askedMs(limiter, host)).toBe(190);
    permit.release();
    expect(askedMs(limiter, host)).toBe(190);
  });

  it("learns from requests that are recorded, and from their latency only if it is given", async () => {
    const { limiter, clock } = talkTo({ default: tenPerSecond });
    const record = async (outcome: Outcome, times: number): Promise<void> => {
      for (let index = 0; index < times; index++) {
        limiter.record(host, outcome, { startedAtMs: clock.now() });
        await clock.advance(100);
      }
    };
    await record({ kind: "success", latencyMs: 100 }, 40);
    await record("success", 40);
    limiter.record(host, "success");
    expect(askedMs(limiter, host)).toBe(0);
    await record({ kind: "success", latencyMs: 900 }, 40);
    limiter.record(host, "success");
    expect(askedMs(limiter, host)).toBeGreaterThan(100);
  });

  it("works the same for a single key", async () => {
    const clock = new VirtualClock();
    const one = limit(tenPerSecond, { clock });
    one.tryAcquire()?.release("rate_limited");
    expect(one.explain().causes[0]).toMatchObject({ limit: "adaptive", waitMs: 200 });
  });

  it("does nothing where the entry is turned off", async () => {
    const { limiter, talk } = talkTo({ default: { ...tenPerSecond, enabled: false } });
    await talk(host, "rate_limited", 20, 1);
    expect(limiter.check(host).proceed).toBe(true);
  });

  it("refuses those at once who can no longer make their deadline", async () => {
    const { limiter, clock } = talkTo({ default: { rate: "1/s", adaptive: true, ...calm } });
    const permit = await limiter.acquire(host);
    const late = limiter.acquire(host, { maxWait: 1500 }).catch((error: unknown) => error);
    const patient = limiter.acquire(host, { maxWait: 2500 });
    await clock.advance(10);
    permit.release("rate_limited");
    expect(await late).toBeInstanceOf(DeadlineError);
    await clock.advance(1990);
    expect((await patient).startedAtMs).toBe(2000);
  });

  it("starts those who wait as soon as a step up allows it", async () => {
    const { limiter, clock } = talkTo({ default: { rate: "1/s", adaptive: true, ...calm } });
    (await limiter.acquire(host)).release("rate_limited");
    const slow = limiter.acquire(host);
    await clock.advance(2000);
    const permit = await slow;
    const next = limiter.acquire(host);
    await clock.advance(100);
    permit.release("success");
    await clock.advance(1900);
    expect((await next).startedAtMs).toBe(4000);
    const faster = limiter.acquire(host);
    await clock.advance(100);
    (await next).release("success");
    await clock.runToEnd();
    // From half a start a second to a 32nd more: 1 / (1/2 + 1/32).
    expect((await faster).startedAtMs).toBeCloseTo(4000 + 1000 / (1 / 2 + 1 / 32), 2);
  });
});

describe("several keys", () => {
  const policy: PolicyInput = {
    default: { ...calm, rate: "10/s", adaptive: true },
    scopes: { "proxy:*": { rate: "10/s", adaptive: true, ...calm }, "key:*": { rate: "10/s", ...calm } },
    hosts: { "c.example": { rate: "10/s", ...calm, intents: { search: { rate: "5/s", adaptive: true, ...calm } } } },
  };

  it("learn from an answer when their own entry says so", async () => {
    const { limiter } = talkTo(policy);
    const target = { host, scopes: ["proxy:one", "key:one"] };
    limiter.tryAcquire(target)?.release("rate_limited");
    const slowed = limiter.explain(target).causes.filter(({ limit: kind }) => kind === "adaptive");
    expect(slowed.map(({ scope }) => scope).sort()).toEqual(["host", "proxy:one"]);
    limiter.tryAcquire({ host: "c.example", intent: "search" })?.release("rate_limited");
    expect(askedMs(limiter, { host: "c.example", intent: "search" })).toBe(400);
    expect(askedMs(limiter, "c.example")).toBe(0);
  });

  it("are left out when the answer is about another one", async () => {
    const { limiter } = talkTo(policy);
    const target = { host, scopes: ["proxy:one"] };
    limiter.tryAcquire(target)?.release({ kind: "rate_limited", scope: "proxy:one" });
    const slowed = limiter.explain(target).causes.filter(({ limit: kind }) => kind === "adaptive");
    expect(slowed.map(({ scope }) => scope)).toEqual(["proxy:one"]);
  });

  it("that several hosts share do not compare latencies", async () => {
    const { limiter, clock } = talkTo({ default: { rate: "10/s" }, global: { rate: "10/s", adaptive: true, ...calm } });
    for (const [target, latencyMs] of [
      ["quick.example", 100],
      ["slow.example", 3000],
    ] as const) {
      for (let index = 0; index < 40; index++) {
        const permit = limiter.tryAcquire(target);
        await clock.advance(latencyMs);
        permit?.release("success");
      }
    }
    limiter.tryAcquire("quick.example")?.release();
    expect(askedMs(limiter, "quick.example")).toBe(0);
    limiter.tryAcquire("slow.example")?.release("rate_limited");
    await clock.advance(100);
    limiter.tryAcquire("slow.example")?.release("rate_limited");
    expect(askedMs(limiter, "quick.example")).toBeGreaterThan(0);
  });
});

describe("what was learned", () => {
  it("goes with reset of all, and stays with a reset of pacing", async () => {
    const { limiter } = talkTo({ default: tenPerSecond });
    limiter.tryAcquire(host)?.release("rate_limited");
    limiter.reset(host);
    limiter.tryAcquire(host)?.release();
    expect(askedMs(limiter, host)).toBe(200);
    limiter.reset(host, "all");
    limiter.tryAcquire(host)?.release();
    expect(askedMs(limiter, host)).toBe(0);
  });

  it("outlives a flood of other hosts for an hour after the last answer, and no longer", async () => {
    const { limiter, clock } = talkTo({ default: tenPerSecond }, { keepStats: 0, maxKeys: 500 });
    limiter.tryAcquire(host)?.release("rate_limited");
    let asked = 0;
    const flood = async (): Promise<void> => {
      await clock.advance(60_000);
      for (let index = 0; index < 100; index++) limiter.tryAcquire(`f${asked++}.flood.example`)?.release("success");
      limiter.stats();
    };
    for (let minute = 0; minute < 59; minute++) await flood();
    limiter.tryAcquire(host)?.release();
    expect(askedMs(limiter, host)).toBe(200);
    for (let minute = 0; minute < 2; minute++) await flood();
    expect(limiter.elapsedMs(host)).toBe(Number.POSITIVE_INFINITY);
  });

  it("stays when the policy changes, as far as the new one allows", async () => {
    const { limiter, clock } = talkTo({ default: tenPerSecond });
    limiter.tryAcquire(host)?.release("rate_limited");
    limiter.configure({ default: { ...tenPerSecond, rate: "20/s" } });
    await clock.advance(1000);
    limiter.tryAcquire(host);
    expect(askedMs(limiter, host)).toBe(200);
  });
});
